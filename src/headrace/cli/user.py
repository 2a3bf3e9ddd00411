"""`headrace user`: users who authenticate with a password, by SCRAM."""

import sys
from collections.abc import Callable, Sequence
from typing import IO, Any, Final

import click

from headrace.cli.support.lazy import LazyGroup
from headrace.cli.support.output import table
from headrace.cli.support.session import Command, Session, confirm, options, yes_option
from headrace.client.admin.users import ITERATIONS, MECHANISMS, User
from headrace.security.private_files import generate_password

MAX_PASSWORD_BYTES: Final = 4096

_name = click.argument("name")


def _mechanisms(help_: str, default: Sequence[str] | None = None) -> Callable[[Command], Command]:
    return click.option(
        "--mechanism", "mechanisms", type=click.Choice(MECHANISMS), multiple=True, default=default, help=help_
    )


def _password_options(command: Command) -> Command:
    """Give a command the name of a user, and where the new password comes from."""
    for option in (
        click.option(
            "--iterations",
            type=click.IntRange(4096, 16384),
            default=ITERATIONS,
            help="How often the password is hashed.",
        ),
        click.option("--generate", is_flag=True, help="Generate a password, and print it."),
        click.option(
            "--password-file",
            metavar="FILE",
            type=click.File("rb"),
            help="A file whose first line is the password; - for the standard input.",
        ),
        _name,
    ):
        command = option(command)
    return command


@click.group(cls=LazyGroup)
def user() -> None:
    """Add, list and remove users and their passwords.

    Users authenticate with SCRAM: brokers keep a salted hash, and never see the password. It is read from the
    terminal, from a file or from the standard input. `headrace acl` says what users may do.
    """


@user.command()
@_password_options
@_mechanisms("What the user may authenticate with; repeatable.", default=MECHANISMS[:1])
@options
def add(session: Session, name: str, mechanisms: Sequence[str], iterations: int, **source: Any) -> None:
    """Add a user:  headrace user add alice"""
    password = _read_password(name, **source)
    session.admin.create_user(name, password, mechanisms=mechanisms, iterations=iterations)
    _show_changed(session, "added", name, password if source["generate"] else None)


@user.command("password")
@_password_options
@_mechanisms("Default: all that the user has; repeatable.")
@options
def change_password(
    session: Session, name: str, mechanisms: Sequence[str], iterations: int, **source: Any
) -> None:
    """Change the password of a user:  headrace user password alice

    Connections that are open stay open.
    """
    known = session.admin.describe_user(name)
    password = _read_password(name, **source)
    chosen = list(mechanisms) or [credential.mechanism for credential in known.credentials]
    session.admin.set_user_password(name, password, mechanisms=chosen, iterations=iterations)
    _show_changed(session, "changed the password of", name, password if source["generate"] else None)


@user.command("list")
@options
def list_(session: Session) -> None:
    """List users and their mechanisms:  headrace user list"""
    found = session.admin.list_users()
    rows = [(each.name, _in_short(each)) for each in found]
    session.show(
        found, (lambda: table(["user", "mechanisms"], rows)) if found else "no user has a SCRAM credential"
    )


@user.command()
@_name
@_mechanisms("Remove only the password for this mechanism; repeatable.")
@yes_option
@options
def remove(session: Session, name: str, mechanisms: Sequence[str], *, yes: bool) -> None:
    """Remove a user:  headrace user remove alice

    The user cannot authenticate any more. ACLs of User:NAME stay: `headrace acl remove` removes them.
    """
    session.admin.describe_user(name)
    confirm(f"Remove user {name}?", action="to remove the user", declined="nothing was removed", yes=yes)
    removed = session.admin.remove_user(name, mechanisms=list(mechanisms) or None)
    session.show(removed, f"removed {name} ({', '.join(mechanisms) or _in_short(removed)})")


def _read_password(name: str, *, password_file: IO[bytes] | None, generate: bool) -> str:
    """Return the new password; UsageError if nobody says what it is."""
    file = password_file
    if generate and file is not None:
        raise click.UsageError("Give --generate or --password-file, not both.")
    if generate:
        return generate_password()
    if file is None:
        if not sys.stdin.isatty():
            raise click.UsageError(
                "A password needs a terminal: give --password-file FILE, - for stdin, or --generate."
            )
        return str(click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True))
    line = file.readline(MAX_PASSWORD_BYTES + 1).rstrip(b"\r\n")
    if not 0 < len(line) <= MAX_PASSWORD_BYTES:
        raise click.UsageError(
            f"--password-file {file.name}: expected a line of 1 to {MAX_PASSWORD_BYTES} bytes."
        )
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise click.UsageError(f"--password-file {file.name}: expected UTF-8.") from None


def _show_changed(session: Session, what: str, name: str, password: str | None) -> None:
    user = session.admin.describe_user(name)
    generated = {} if password is None else {"password": password}
    result = {"name": user.name, "credentials": user.credentials, **generated}
    line = f"{what} {user.name} ({_in_short(user)})"
    session.show(result, line if password is None else f"{line}; password: {password}")


def _in_short(user: User) -> str:
    return ", ".join(credential.mechanism for credential in user.credentials)
