"""`headrace schema list`, `get` and `diff`."""

from collections.abc import Sequence

import click

from headrace.cli.output import Drawable, count, table
from headrace.cli.schema import (
    any_subject_argument,
    in_file,
    options,
    registry_of,
    schema_file,
    schema_options,
    subject_argument,
    version_of,
)
from headrace.cli.session import Session
from headrace.client.errors import ClientError
from headrace.client.schemas.files import compare, pretty
from headrace.client.schemas.registry import LATEST, Registered, Registry

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command("list")
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
    registry = registry_of(session)
    if subject is not None:
        versions = registry.versions(subject, deleted=deleted)
        found = [registry.get(subject, version, deleted=deleted) for version in versions]
    else:
        found = [
            _last(registry, name, deleted=deleted) for name in registry.subjects(prefix, deleted=deleted)
        ]
    session.show(found, lambda: _draw(found))


def _last(registry: Registry, subject: str, *, deleted: bool) -> Registered:
    return registry.get(subject, registry.versions(subject, deleted=deleted)[-1], deleted=deleted)


def _draw(found: Sequence[Registered]) -> Drawable:
    if not found:
        return "there are no subjects"
    rows = [
        (each.subject, each.version, each.id, each.type, count(len(each.schema), "byte")) for each in found
    ]
    return table(["subject", "version", "id", "type", "size"], rows)


@click.command()
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
    """
    if (subject is None) == (schema_id is None):
        raise click.UsageError("Give a subject or --id.")
    registry = registry_of(session)
    if schema_id is not None:
        found = registry.by_id(schema_id)
    else:
        found = registry.get(str(subject), version_of(version))
    session.show(found, found.schema if raw else pretty(found))


@click.command()
@subject_argument
@click.argument("versions", nargs=-1)
@click.option("--file", type=schema_file, help="Compare a version with this file.")
@schema_options
@options
def diff(
    session: Session,
    *,
    subject: str,
    versions: Sequence[str],
    file: str | None,
    schema_type: str | None,
    references: Sequence[str],
) -> None:
    """Compare two versions:  headrace schema diff orders-value 1 3

    Without versions, compare the latest with the one before it. With --file, compare one version, or the
    latest, with the file.
    """
    registry = registry_of(session)
    numbers = _versions(registry, subject, versions, file)
    found = [registry.get(subject, version) for version in numbers]
    names = [f"{subject} version {each.version}" for each in found]
    if file is None:
        lines = compare(found[0], found[1], (names[0], names[1]))
    else:
        kind = schema_type or (found[0].type if file == "-" else None)
        lines = compare(found[0], in_file(file, kind, references), (names[0], file))
        names.append(file)
    result = {"from": names[0], "to": names[1], "same": not lines, "diff": lines}
    same = f"{names[0]} and {names[1]} are the same"
    session.show(result, "\n".join(_coloured(line) for line in lines) or same)


def _versions(
    registry: Registry, subject: str, given: Sequence[str], file: str | None
) -> Sequence[int | str]:
    most = 2 if file is None else 1
    if len(given) > most:
        raise click.UsageError(f"Give {count(most, 'version')} at most.")
    if file is not None or len(given) == most:
        return [version_of(each) for each in given] or [LATEST]
    existing = registry.versions(subject)
    if given:
        return [version_of(given[0]), existing[-1]]
    if len(existing) == 1:
        raise ClientError(f"{subject} has only one version: give --file to compare it with a file")
    return existing[-2:]


def _coloured(line: str) -> str:
    return click.style(line, fg=_COLOURS.get(line[:1]))
