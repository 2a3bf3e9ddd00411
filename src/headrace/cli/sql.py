"""`headrace sql`: a query over topics, as tables of DuckDB."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import click

from headrace.cli.support.output import bar, count, draw
from headrace.cli.support.output import table as drawn
from headrace.cli.support.registry import registry_of_records, registry_option
from headrace.cli.support.session import INTERRUPTED, Session, options

SHOWN: Final = 1_000  # rows of a table, unless --limit says otherwise
_REMEMBERED: Final = 1_000  # lines in the history
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

    `show tables` lists the topics. Without an argument the query is read from the standard input. At a
    terminal, type one query after the other, each with a semicolon at its end; earlier ones can be recalled.
    """
    if sum((session.as_json, as_csv, output is not None)) > 1:
        raise click.UsageError("Give one of --json, --csv and --output.")
    if output is not None and output.suffix not in _SUFFIXES:
        raise click.UsageError(f"--output {output}: expected a file that ends in {', '.join(_SUFFIXES)}.")
    try:
        import headrace.tables.sql.tables  # noqa: F401, PLC0415  slow to import
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    run = partial(_run, session, limit=limit, as_csv=as_csv, output=output, decode=decode, on_error=on_error)
    if query is None and sys.stdin.isatty():
        _prompt(session, run)
    else:
        with _ended_at_once():
            run(sys.stdin.read() if query is None else query)


def _run(
    session: Session,
    query: str,
    *,
    limit: int | None,
    as_csv: bool,
    output: Path | None,
    decode: str,
    on_error: str,
    at_prompt: bool = False,
) -> None:
    """Print or write the rows of a query. At a prompt, Ctrl-C ends only the query, with click.Abort."""
    from headrace.tables.sql import output as rows_output  # noqa: PLC0415
    from headrace.tables.sql.tables import Topics, connected  # noqa: PLC0415

    with connected() as connection, bar("reading", 1.0) as advance:
        topics = Topics(
            session.connection,
            partial(registry_of_records, session),
            decode=decode,
            on_error=on_error,
            progress=advance,
        )
        try:
            with topics.errors():
                rows = topics.query(connection, query)
                if limit is not None:
                    rows = rows.limit(limit)
                if output is not None:
                    written = rows_output.write(rows, output)
                elif as_csv or session.as_json:
                    rows_output.print_lines(rows, as_csv=as_csv)
                else:
                    table = rows_output.load(rows.limit(limit or SHOWN + 1))
        except KeyboardInterrupt:
            if at_prompt:
                raise click.Abort from None  # after it, the connection waits for the threads of the query
            raise
    if output is not None:
        click.echo(f"{count(written, 'row')} in {output}")
    elif not as_csv and not session.as_json:
        draw(drawn(table.schema.names, rows_output.shown(table.slice(0, limit or SHOWN))))
        if table.num_rows > (limit or SHOWN):
            click.echo(f"these are the first {SHOWN:,} rows; --limit N prints more", err=True)


def _prompt(session: Session, run: Callable[..., None]) -> None:
    """Run the queries that are typed at the terminal; an error or Ctrl-C ends only its query."""
    from headrace.cli.main import known_errors, sentence  # noqa: PLC0415  it imports the commands

    click.echo(
        "a topic is a table, and a query ends with `;`; `show tables;` lists topics, Ctrl-D ends", err=True
    )
    with _history():
        for query in _typed_queries():
            try:
                run(query, at_prompt=True)
            except (KeyboardInterrupt, click.Abort):
                click.echo("interrupted", err=True)
            except known_errors() as error:
                click.echo(f"headrace: {' '.join(sentence(error, session).split())}", err=True)


def _typed_queries() -> Iterator[str]:
    """Yield each query once its semicolon is typed, until `exit` or Ctrl-D. Ctrl-C discards its lines."""
    typed: list[str] = []
    while True:
        try:
            typed.append(input("    ...> " if typed else "headrace> "))
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            typed = []
            click.echo()
            continue
        query = "\n".join(typed).strip()
        if query.lower().rstrip("; ") in {"exit", "quit"}:
            return
        if query.endswith(";"):
            yield query
        if not query or query.endswith(";"):
            typed = []


@contextmanager
def _history() -> Iterator[None]:
    """Let lines be edited, and keep the last of them in a file that only the user can read."""
    try:
        import readline  # noqa: PLC0415  not every build of Python has it
    except ImportError:
        yield
        return
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    file = Path(state) / "headrace" / "sql_history"
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        readline.read_history_file(file)
    readline.set_history_length(_REMEMBERED)
    try:
        yield
    finally:
        with suppress(OSError):
            readline.write_history_file(file)


@contextmanager
def _ended_at_once() -> Iterator[None]:
    """End the process at Ctrl-C and if nobody reads its output: threads of DuckDB may run for long."""
    try:
        yield
    except (KeyboardInterrupt, BrokenPipeError) as error:
        os._exit(INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1)
