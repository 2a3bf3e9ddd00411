"""`headrace sql`: a query over topics, as tables of DuckDB."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import click

from headrace.cli.support.output import bar, count, draw
from headrace.cli.support.output import table as drawn
from headrace.cli.support.registry import registry_of_records, registry_option
from headrace.cli.support.session import INTERRUPTED, Session, options

SHOWN: Final = 1_000  # rows of a table, unless --limit says otherwise
_SUFFIXES: Final = (".parquet", ".csv", ".json")


@click.command()
@click.argument("query", required=False)
@click.option(
    "--limit", "-n", type=click.IntRange(1), help=f"Print so many rows. Default: all, in a table {SHOWN:,}."
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the rows to a file that ends in .parquet, .csv or .json (one object per line).",
)
@click.option(
    "--decode",
    type=click.Choice(["auto", "registry", "text", "bytes"]),
    default="auto",
    help="What keys and values are. auto: by the registry if it has a schema of the topic, otherwise text.",
)
@click.option(
    "--on-error",
    type=click.Choice(["fail", "null", "skip"]),
    default="fail",
    help="What to do with records that cannot be decoded.",
)
@registry_option
@options
def sql(
    session: Session,
    *,
    query: str | None,
    limit: int | None,
    as_csv: bool,
    output: Path | None,
    decode: str,
    on_error: str,
) -> None:
    r"""Query topics with SQL:  headrace sql "select partition, count(*) from orders group by all"

    A topic is a table with the columns key, value, topic, partition, offset, timestamp, timestampType and
    headers; with a schema in the registry the value is a struct. Only topics that the query names are read.
    Conditions on partition, offset and timestamp are applied before records are fetched. Tables may also be
    files, as in DuckDB, which the extra `sql` of the package installs.

      headrace sql "select value.item, sum(value.price) from orders where timestamp > now() - interval 1 hour
      group by all"

      headrace sql "select * from \"my-topic\" where partition = 0 and \"offset\" >= 1000" -o rows.parquet

    `show tables` lists the topics. Without an argument the query is read from the standard input.
    """
    if sum((session.as_json, as_csv, output is not None)) > 1:
        raise click.UsageError("Give one of --json, --csv and --output.")
    if output is not None and output.suffix not in _SUFFIXES:
        raise click.UsageError(f"--output {output}: expected a file that ends in {', '.join(_SUFFIXES)}.")
    try:
        import headrace.tables.sql.tables  # noqa: F401, PLC0415  slow to import
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    from headrace.tables.sql import output as rows_output  # noqa: PLC0415
    from headrace.tables.sql.tables import Topics, connected  # noqa: PLC0415

    with _ended_at_once(), connected() as connection, bar("reading", 1.0) as advance:
        topics = Topics(
            session.connection,
            partial(registry_of_records, session),
            decode=decode,
            on_error=on_error,
            progress=advance,
        )
        with topics.errors():
            rows = topics.query(connection, sys.stdin.read() if query is None else query)
            if limit is not None:
                rows = rows.limit(limit)
            if output is not None:
                written = rows_output.write(rows, output)
            elif as_csv or session.as_json:
                rows_output.print_lines(rows, as_csv=as_csv)
            else:
                table = rows_output.load(rows.limit(limit or SHOWN + 1))
    if output is not None:
        click.echo(f"{count(written, 'row')} in {output}")
    elif not as_csv and not session.as_json:
        draw(drawn(table.schema.names, rows_output.shown(table.slice(0, limit or SHOWN))))
        if table.num_rows > (limit or SHOWN):
            click.echo(f"these are the first {SHOWN:,} rows; --limit N prints more", err=True)


@contextmanager
def _ended_at_once() -> Iterator[None]:
    """End the process at Ctrl-C and if nobody reads its output: threads of DuckDB may run for long."""
    try:
        yield
    except (KeyboardInterrupt, BrokenPipeError) as error:
        os._exit(INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1)
