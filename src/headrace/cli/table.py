"""`headrace table`: status, optimize, cluster, vacuum, expire."""

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from headrace.cli.support.lazy import LazyGroup
from headrace.cli.support.output import Drawable, count, size
from headrace.cli.support.output import table as drawn
from headrace.cli.support.session import Command, Session, duration_ms, json_option, pairs

if TYPE_CHECKING:
    from headrace.spark.tables.maintenance import Maintained, Rewritten, Status

_SHOWN: Final = 20  # files
_MILLISECOND: Final = dt.timedelta(milliseconds=1)


@click.group(cls=LazyGroup)
def table() -> None:
    """Show and maintain Delta and Iceberg tables:  headrace table status shop-table

    TABLE is the path or URL of a Delta table, or the name of an Iceberg table, namespace.name. All commands
    are safe while queries write to the table.
    """


def table_options(command: Command) -> Command:
    """Give a command TABLE, the options that describe it, --json, and the session as its first argument."""
    for decorate in (
        json_option,
        click.option(
            "--storage",
            metavar="NAME=VALUE",
            multiple=True,
            help="A storage option of deltalake; repeatable.",
        ),
        click.option(
            "--catalog",
            metavar="NAME=VALUE",
            multiple=True,
            help="A property of the Iceberg catalog, such as uri=...; repeatable. "
            "Default: pyiceberg's configuration.",
        ),
        click.option(
            "--format",
            "format_",
            type=click.Choice(["delta", "iceberg"]),
            help="Default: iceberg for a name with a dot and no slash.",
        ),
        click.argument("name", metavar="TABLE"),
    ):
        command = decorate(command)
    return command


RETAIN: Final = "Keep what is younger; an ISO 8601 duration."


@table.command()
@table_options
def status(session: Session, name: str, **options: Any) -> None:
    """Show the size, the files and the columns of a table:  headrace table status shop-table"""
    found = _opened(name, **options).status()
    session.show(found, lambda: _drawn_status(found))


@table.command()
@click.option("--target-file-size", "target", type=click.IntRange(1), help="In bytes. Default: 128 MiB.")
@table_options
def optimize(session: Session, name: str, target: int | None, **options: Any) -> None:
    """Merge small files:  headrace table optimize shop-table"""
    done = _opened(name, **options, target=target).optimize()
    session.show(done, f"{name}: {_rewritten(done)}")


@table.command()
@click.option("--by", "columns", required=True, help="Columns, separated by commas; at most 4.")
@click.option("--target-file-size", "target", type=click.IntRange(1), help="In bytes. Default: 128 MiB.")
@table_options
def cluster(session: Session, name: str, columns: str, target: int | None, **options: Any) -> None:
    """Rewrite all files with rows in the order of columns:  headrace table cluster shop-table --by country,at

    By several columns, rows are in Z-order. Readers that filter by these columns skip more files.
    """
    done = _opened(name, **options, target=target).cluster([each.strip() for each in columns.split(",")])
    session.show(done, f"{name}: {_rewritten(done)}")


@table.command()
@click.option("--retain", default="P7D", help=f"{RETAIN} At least P1D.")
@click.option("--yes", is_flag=True, help="Remove the files. Without it, they are only listed.")
@table_options
def vacuum(session: Session, name: str, retain: str, yes: bool, **options: Any) -> None:
    """Remove files that are no longer part of a table:  headrace table vacuum shop-table --yes

    These are files of replaced versions, and files that failed batches have left. Readers of versions that
    are older than the retention lose their files.
    """
    older_than = duration_ms(retain, "--retain") * _MILLISECOND
    removed = _opened(name, **options).vacuum(older_than, dry_run=not yes)
    verb = "removed" if removed.done else "would be removed, with --yes"
    lines = [f"{name}: {count(len(removed.files), 'file')}, {size(removed.bytes)}, {verb}"]
    lines += [f"  {file}" for file in removed.files[:_SHOWN]]
    if len(removed.files) > _SHOWN:
        lines.append(f"  and {len(removed.files) - _SHOWN:,} more")
    session.show(removed, "\n".join(lines))


@table.command()
@click.option("--retain", default="P5D", help=RETAIN)
@click.option("--keep", type=click.IntRange(1), default=10, help="Keep so many snapshots in any case.")
@click.option("--yes", is_flag=True, help="Expire the snapshots. Without it, they are only counted.")
@table_options
def expire(session: Session, name: str, retain: str, keep: int, yes: bool, **options: Any) -> None:
    """Expire old snapshots of an Iceberg table:  headrace table expire shop.orders --yes

    Snapshots of branches and tags are kept. `headrace table vacuum` removes the files that only expired
    snapshots have.
    """
    older_than = duration_ms(retain, "--retain") * _MILLISECOND
    expired = _opened(name, **options).expire(older_than, keep, dry_run=not yes)
    verb = "expired" if expired.done else "would expire, with --yes"
    session.show(expired, f"{name}: {count(len(expired.snapshots), 'snapshot')} {verb}; {expired.kept} kept")


def _opened(
    name: str, format_: str | None, catalog: Sequence[str], storage: Sequence[str], target: int | None = None
) -> "Maintained":
    from headrace.spark.tables import maintenance  # noqa: PLC0415  slow to import

    is_iceberg = format_ == "iceberg" or (format_ is None and "." in name.strip(".") and "/" not in name)
    size_ = {} if target is None else {"targetFileBytes": str(target)}
    if is_iceberg:
        if storage:
            raise click.UsageError("--storage is for Delta tables; an Iceberg table has --catalog.")
        given = {f"catalog.{key}": value for key, value in pairs(catalog, "--catalog").items()}
        return maintenance.iceberg({"table": name, **given, **size_})
    if catalog:
        raise click.UsageError("--catalog is for Iceberg tables; a Delta table has --storage.")
    given = {f"storage.{key}": value for key, value in pairs(storage, "--storage").items()}
    return maintenance.delta({"path": name, **given, **size_})


def _rewritten(done: "Rewritten") -> str:
    if not done.files_before:
        return "no files to rewrite"
    return f"{count(done.files_before, 'file')} became {done.files_after:,}"


def _drawn_status(found: "Status") -> Drawable:
    rows = "" if found.rows is None else f", {count(found.rows, 'row')}"
    what = "version" if found.format == "Delta" else "snapshot"
    head = (
        f"{found.name}: {found.format}, {what} {found.version}{rows}, {count(found.files, 'file')} "
        f"({found.small_files:,} small), {size(found.bytes)}, {count(found.versions, what)} to read\n"
        f"partitioned by {', '.join(found.partitioned_by) or 'nothing'}"
    )
    if found.queries:
        head += "".join(f"\nquery {query}: batch {batch}" for query, batch in sorted(found.queries.items()))
    return drawn(["column", "type"], found.columns.items(), title=f"{head}\n")
