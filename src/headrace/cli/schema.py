"""`headrace schema`: list, get, register, check, delete, config, mode."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from headrace.cli.support.lazy import LazyGroup
from headrace.cli.support.output import count, table
from headrace.cli.support.registry import connect, registry_option
from headrace.cli.support.session import Command, Session, confirm, yes_option
from headrace.cli.support.session import options as cluster_options
from headrace.client.errors import ClientError
from headrace.client.schemas.files import TYPES, pretty, read_schema, reasons
from headrace.client.schemas.registry import INCOMPATIBLE, LATEST, LEVELS, MODES, RegistryError, Schema

LARGEST_BYTES: Final = 16 * 1024 * 1024  # of a file; no registry accepts as much


@click.group(cls=LazyGroup)
def schema() -> None:
    """Register, check and delete schemas:  headrace schema register orders-value order.avsc

    The registry is that of a gateway, which `headrace up` runs, or any other with Confluent's API.
    """


def _not_empty(_context: click.Context, _parameter: click.Parameter, subject: str | None) -> str | None:
    if subject == "":
        raise click.UsageError("The name of the subject is empty.")
    return subject


subject_argument = click.argument("subject", callback=_not_empty)
any_subject_argument = click.argument("subject", required=False, callback=_not_empty)
file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))


def options(command: Command) -> Command:
    """Give a command --registry, the options of a cluster and, as its first argument, the session."""
    return registry_option(cluster_options(command))


def schema_options(command: Command) -> Command:
    """Give a command --type and --reference, which describe the schema in a file."""
    kind = click.option(
        "--type",
        "schema_type",
        type=click.Choice(TYPES, case_sensitive=False),
        help="Default: by the suffix of the file: .avsc, .json, .proto.",
    )
    references = click.option(
        "--reference",
        "references",
        metavar="NAME=SUBJECT:VERSION",
        multiple=True,
        help="A schema that this one uses; repeatable.",
    )
    return kind(references(command))


def in_file(file: str, schema_type: str | None, references: Sequence[str]) -> Schema:
    """Return the schema in a file, or on the standard input if the file is `-`."""
    if file == "-":
        return read_schema("the input", sys.stdin.read(LARGEST_BYTES), schema_type, references)
    try:
        text = Path(file).read_text("utf-8")
    except UnicodeDecodeError:
        raise ClientError(f"{file} is not text in UTF-8") from None
    return read_schema(file, text, schema_type, references)


def version_of(text: str) -> int | str:
    """Return `latest`, or a version number."""
    if text == LATEST:
        return text
    if not text.isdecimal() or not int(text):
        raise click.UsageError(f"version {text}: expected a number such as 1, or latest.")
    return int(text)


@schema.command("list")
@any_subject_argument
@click.option(
    "--prefix",
    default="",
    show_default=False,
    metavar="TEXT",
    help="Only subjects that start with this text.",
)
@click.option(
    "--deleted", is_flag=True, help="Include subjects and versions that were deleted, but not permanently."
)
@options
def list_(session: Session, subject: str | None, prefix: str, *, deleted: bool) -> None:
    """List subjects with their latest versions:  headrace schema list

    Or every version of one:  headrace schema list orders-value
    """
    registry = connect(session)
    registered = []
    for name in registry.subjects(prefix, deleted=deleted) if subject is None else [subject]:
        versions = registry.versions(name, deleted=deleted)
        shown = versions[-1:] if subject is None else versions
        registered += [registry.get(name, version, deleted=deleted) for version in shown]
    rows = [(it.subject, it.version, it.id, it.type, count(len(it.schema), "byte")) for it in registered]
    columns = ["subject", "version", "id", "type", "size"]
    session.show(registered, (lambda: table(columns, rows)) if rows else "there are no subjects")


@schema.command()
@any_subject_argument
@click.option("--version", default=LATEST, metavar="N", help="The version.")
@click.option(
    "--id", "schema_id", type=click.IntRange(0), metavar="N", help="The id of a schema, of any subject."
)
@click.option("--raw", is_flag=True, help="Print it as it is stored, not indented.")
@options
def get(session: Session, subject: str | None, version: str, schema_id: int | None, *, raw: bool) -> None:
    """Print a schema:  headrace schema get orders-value --version 2 > order.avsc

    Or the schema with an id, which is in the first bytes of a record:  headrace schema get --id 7

    \b
      diff <(headrace schema get orders-value --version 1) <(headrace schema get orders-value)
    """  # noqa: D301  \b keeps click from wrapping these lines
    if (subject is None) == (schema_id is None):
        raise click.UsageError("Give a subject or --id.")
    registry = connect(session)
    if schema_id is not None:
        registered = registry.by_id(schema_id)
    else:
        registered = registry.get(str(subject), version_of(version))
    session.show(registered, registered.schema if raw else pretty(registered))


@schema.command()
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
    registry = connect(session)
    try:
        made = registry.register(subject, schema, normalize=normalize)
    except RegistryError as error:
        why = reasons(registry.check(subject, schema)) if error.code == INCOMPATIBLE else []
        if not why:
            raise
        raise ClientError(f"{file} cannot be the next version of {subject}: {'; '.join(why)}") from error
    session.show(made, f"{subject}: version {made.version}, id {made.id}")


@schema.command()
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
    why = connect(session).check(subject, schema, against)
    result = {"subject": subject, "compatible": not why, "messages": why}
    lines = reasons(why)
    session.show(result, "\n".join(lines) or f"{file} can be the next version of {subject}")
    if why:
        raise ClientError(f"{file} cannot be the next version of {subject}: {count(len(lines), 'reason')}")


@schema.command()
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
    registry = connect(session)
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


@schema.command()
@any_subject_argument
@click.option("--set", "level", type=click.Choice(LEVELS, case_sensitive=False), help="The new level.")
@click.option("--unset", is_flag=True, help="Go back to the level of all subjects, or to BACKWARD.")
@options
def config(session: Session, subject: str | None, level: str | None, *, unset: bool) -> None:
    """Show or change the compatibility level:  headrace schema config orders-value --set FULL

    BACKWARD: consumers with the new schema can read records of the last version. FORWARD: consumers with the
    last version can read records of the new schema. FULL is both; _TRANSITIVE compares with all earlier
    versions, not only the last. Without a subject it is the level of all subjects without one of their own.
    """
    if level is not None and unset:
        raise click.UsageError("--set and --unset contradict each other.")
    registry = connect(session)
    if level is not None:
        registry.set_level(level.upper(), subject)
    elif unset:
        registry.unset_level(subject)
    found = registry.level(subject)
    session.show({"subject": subject, "compatibility": found}, f"{subject or ALL}: {found}")


@schema.command()
@any_subject_argument
@click.option("--set", "new", type=click.Choice(MODES, case_sensitive=False), help="The new mode.")
@click.option("--unset", is_flag=True, help="Go back to the mode of all subjects.")
@click.option("--force", is_flag=True, help="Allow IMPORT although there are schemas.")
@options
def mode(session: Session, subject: str | None, new: str | None, *, unset: bool, force: bool) -> None:
    """Show or change whether schemas can be registered:  headrace schema mode orders-value --set READONLY

    READWRITE accepts schemas, READONLY none, and IMPORT accepts schemas with ids from another registry.
    """
    if new is not None and unset:
        raise click.UsageError("--set and --unset contradict each other.")
    if unset and subject is None:
        raise click.UsageError("--unset needs a subject: the mode of all subjects can only be set.")
    registry = connect(session)
    if new is not None:
        registry.set_mode(new.upper(), subject, force=force)
    elif unset:
        registry.unset_mode(str(subject))
    found = registry.mode(subject)
    session.show({"subject": subject, "mode": found}, f"{subject or ALL}: {found}")
