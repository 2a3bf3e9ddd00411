"""`headrace schema register`, `check`, `delete`, `config` and `mode`."""

from collections.abc import Sequence

import click

from headrace.cli.output import count
from headrace.cli.schema import (
    any_subject_argument,
    file_argument,
    in_file,
    options,
    registry_of,
    schema_options,
    subject_argument,
    version_of,
)
from headrace.cli.session import Session, confirm, yes_option
from headrace.client.errors import ClientError
from headrace.client.schemas.files import reasons
from headrace.client.schemas.registry import INCOMPATIBLE, LATEST, LEVELS, MODES, RegistryError


@click.command()
@subject_argument
@file_argument
@schema_options
@click.option("--normalize", is_flag=True, help="Treat schemas with the same meaning as the same.")
@options
def register(
    session: Session,
    *,
    subject: str,
    file: str,
    schema_type: str | None,
    references: Sequence[str],
    normalize: bool,
) -> None:
    """Register a file as the next version of a subject:  headrace schema register orders-value order.avsc

    A schema that is not compatible with the earlier versions is refused. One that is registered already keeps
    its version.

    \b
      headrace schema register lines-value line.proto --reference order.proto=orders-value:1
    """  # noqa: D301  \b keeps click from wrapping these lines
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
@click.option(
    "--version",
    metavar="N",
    help="Compare with this version, or latest. Default: as the compatibility level says.",
)
@options
def check(
    session: Session,
    *,
    subject: str,
    file: str,
    schema_type: str | None,
    references: Sequence[str],
    version: str | None,
) -> None:
    """Check whether a file could be the next version:  headrace schema check orders-value order.avsc

    Changes nothing. Exit status 1 if the file is not compatible.
    """
    schema = in_file(file, schema_type, references)
    against = None if version is None else version_of(version)
    why = registry_of(session).check(subject, schema, against)
    result = {"subject": subject, "compatible": not why, "messages": why}
    lines = reasons(why)
    session.show(result, "\n".join(lines) or f"{file} can be the next version of {subject}")
    if why:
        raise ClientError(f"{file} cannot be the next version of {subject}: {count(len(lines), 'reason')}")


@click.command()
@subject_argument
@click.option("--version", metavar="N", help="Only this version, or latest.")
@click.option(
    "--permanent", is_flag=True, help="Delete the ids, too: records with these ids become unreadable."
)
@yes_option
@options
def delete(session: Session, subject: str, version: str | None, *, permanent: bool, yes: bool) -> None:
    """Delete a subject, or a version of it:  headrace schema delete orders-value --version 1

    Records that were written with it can still be read, because their ids stay valid until it is deleted with
    --permanent.
    """
    registry = registry_of(session)
    which = None if version is None else version_of(version)
    if which == LATEST:
        which = registry.versions(subject)[-1]
    what = f"{subject}, all versions," if which is None else f"version {which} of {subject}"
    more = " for good? Records that were written with it become unreadable" if permanent else "?"
    confirm(f"Delete {what}{more}", action=f"to delete {what.rstrip(',')}", yes=yes)
    gone = registry.delete(subject, which, permanent=permanent)
    how = "deleted for good" if permanent else "deleted"
    numbers = ", ".join(map(str, gone))
    session.show(
        {"subject": subject, "deleted": gone, "permanent": permanent},
        f"{subject}: version{'' if len(gone) == 1 else 's'} {numbers} {how}",
    )


ALL = "all subjects"


@click.command()
@any_subject_argument
@click.option("--set", "level", type=click.Choice(LEVELS, case_sensitive=False), help="The new level.")
@click.option("--unset", is_flag=True, help="Go back to the level of all subjects, or to BACKWARD.")
@options
def config(session: Session, subject: str | None, level: str | None, *, unset: bool) -> None:
    """Show the compatibility level:  headrace schema config orders-value

    Or change it:  headrace schema config orders-value --set FULL

    BACKWARD: consumers with the new schema can read records of the last version. FORWARD: consumers with the
    last version can read records of the new schema. FULL is both; _TRANSITIVE compares with all earlier
    versions, not only the last. Without a subject it is the level of all subjects without one of their own.
    """
    if level is not None and unset:
        raise click.UsageError("--set and --unset contradict each other.")
    registry = registry_of(session)
    if level is not None:
        registry.set_level(level.upper(), subject)
    elif unset:
        registry.unset_level(subject)
    found = registry.level(subject)
    session.show({"subject": subject, "compatibility": found}, f"{subject or ALL}: {found}")


@click.command()
@any_subject_argument
@click.option("--set", "new", type=click.Choice(MODES, case_sensitive=False), help="The new mode.")
@click.option("--unset", is_flag=True, help="Go back to the mode of all subjects.")
@click.option("--force", is_flag=True, help="Allow IMPORT although there are schemas.")
@options
def mode(session: Session, subject: str | None, new: str | None, *, unset: bool, force: bool) -> None:
    """Show whether schemas can be registered:  headrace schema mode

    Or change it:  headrace schema mode orders-value --set READONLY

    READWRITE accepts schemas, READONLY none, and IMPORT accepts schemas with ids from another registry.
    """
    if new is not None and unset:
        raise click.UsageError("--set and --unset contradict each other.")
    if unset and subject is None:
        raise click.UsageError("--unset needs a subject: the mode of all subjects can only be set.")
    registry = registry_of(session)
    if new is not None:
        registry.set_mode(new.upper(), subject, force=force)
    elif unset:
        registry.unset_mode(str(subject))
    found = registry.mode(subject)
    session.show({"subject": subject, "mode": found}, f"{subject or ALL}: {found}")
