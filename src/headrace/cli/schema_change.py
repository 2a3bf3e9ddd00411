"""`headrace schema register`, `check` and `delete`."""

from collections.abc import Sequence

import click

from headrace.cli.asking import ask
from headrace.cli.schema_session import (
    file_argument,
    in_file,
    options,
    registry_of,
    schema_options,
    subject_argument,
    version_of,
)
from headrace.cli.session import Session
from headrace.cli.texts import count
from headrace.client.errors import ClientError
from headrace.client.schemas.files import reasons
from headrace.client.schemas.http import INCOMPATIBLE, RegistryError
from headrace.client.schemas.registry import LATEST


@click.command()
@subject_argument
@file_argument
@schema_options
@click.option("--normalize", is_flag=True, help="Take schemas that mean the same for the same.")
@options
@click.pass_obj
def register(
    session: Session,
    *,
    subject: str,
    file: str,
    schema_type: str | None,
    references: Sequence[str],
    normalize: bool,
) -> None:
    """Make a file the next version of a subject:  headrace schema register orders-value order.avsc

    It is refused if it does not fit to the versions before it. One that is there already stays as it is.

    \b
      headrace schema register lines-value line.proto --reference order.proto=orders-value:1
    """  # noqa: D301  \b is how click is told to leave lines as they are
    schema = in_file(file, schema_type, references)
    registry = registry_of(session)
    try:
        made = registry.register(subject, schema, normalize=normalize)
    except RegistryError as error:
        why = reasons(registry.check(subject, schema)) if error.code == INCOMPATIBLE else []
        if not why:
            raise
        raise ClientError(f"{file} cannot be the next version of {subject}: {'; '.join(why)}") from error
    session.show(made, f"{subject}: version {made.version}, id {made.id}")


@click.command()
@subject_argument
@file_argument
@schema_options
@click.option("--version", metavar="N", help="Only against this one, or latest; else as the subject asks.")
@options
@click.pass_obj
def check(
    session: Session,
    *,
    subject: str,
    file: str,
    schema_type: str | None,
    references: Sequence[str],
    version: str | None,
) -> None:
    """Look whether a file could be the next version:  headrace schema check orders-value order.avsc

    Changes nothing. Exit status 1 if it could not.
    """
    schema = in_file(file, schema_type, references)
    against = None if version is None else version_of(version)
    why = registry_of(session).check(subject, schema, against)
    result = {"subject": subject, "compatible": not why, "messages": why}
    said = reasons(why)
    session.show(result, "\n".join(said) or f"{file} can be the next version of {subject}")
    if why:
        raise ClientError(f"{file} cannot be the next version of {subject}: {count(len(said), 'reason')}")


@click.command()
@subject_argument
@click.option("--version", metavar="N", help="Only this one, or latest.")
@click.option("--permanent", is_flag=True, help="Its ids are forgotten, too: nobody can read what has them.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@options
@click.pass_obj
def delete(session: Session, subject: str, version: str | None, *, permanent: bool, yes: bool) -> None:
    """Delete a subject, or a version of it:  headrace schema delete orders-value --version 1

    Records that were written with it can still be read, as schemas are found by their ids, until it is
    deleted with --permanent.
    """
    registry = registry_of(session)
    which = None if version is None else version_of(version)
    if which == LATEST:
        which = registry.versions(subject)[-1]
    if not yes:
        _ask(subject, which, permanent=permanent)
    gone = registry.delete(subject, which, permanent=permanent)
    how = "deleted for good" if permanent else "deleted"
    numbers = ", ".join(map(str, gone))
    session.show(
        {"subject": subject, "deleted": gone, "permanent": permanent},
        f"{subject}: version{'' if len(gone) == 1 else 's'} {numbers} {how}",
    )


def _ask(subject: str, version: int | str | None, *, permanent: bool) -> None:
    """Return if the deletion is wanted."""
    what = f"{subject}, all versions," if version is None else f"version {version} of {subject}"
    more = " for good? Records that were written with it cannot be read any more" if permanent else "?"
    ask(f"Delete {what}{more}", allowed=f"to delete {what.rstrip(',')}")
