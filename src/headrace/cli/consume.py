"""`headrace consume`: a topic's records on standard output."""

import re
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

import click

from headrace.cli import formats
from headrace.cli.session import Session, options
from headrace.cli.texts import INTERRUPTED
from headrace.client.records import BEGINNING, END, Reader, Start

_TIME: Final = re.compile(r"@\d+|\d{4}-\d\d-\d\d.*")


@click.command()
@click.argument("topic")
@click.option(
    "--from",
    "start",
    metavar="WHERE",
    help="beginning; end; an offset; -N: the last N of each partition; a time, as 2026-01-31T12:00 or @MS. "
    "Else end, or beginning with --exit-at-end.",
)
@click.option("--from-beginning", is_flag=True, help="The same as --from beginning.")
@click.option("--partition", "partitions", type=click.IntRange(0), multiple=True, help="Repeat for more.")
@click.option("--max-messages", type=click.IntRange(1), help="Leave after so many.")
@click.option("--exit-at-end", is_flag=True, help="Leave where every partition ends.")
@click.option("--key-separator", metavar="TEXT", help="Print key, TEXT, value.")
@click.option(
    "--format",
    "format_",
    metavar="FORMAT",
    help=r"%k key, %v value, %p partition, %o offset, %t topic, %T timestamp, %h headers, %K and %S sizes, "
    r"\n \t \0 \xff. Else %v\n.",
)
@options
@click.pass_obj
def consume(
    session: Session,
    *,
    topic: str,
    start: str | None,
    partitions: Sequence[int],
    max_messages: int | None,
    key_separator: str | None,
    format_: str | None,
    from_beginning: bool,
    exit_at_end: bool,
) -> None:
    r"""Print records:  headrace consume orders --from beginning

    Without a group, so that nothing is committed. --json prints one object a line.

      headrace consume orders --exit-at-end --format '%p %o %k=%v\n'
    """
    if start is not None and from_beginning:
        raise click.UsageError("Give --from or --from-beginning, not both.")
    if format_ is not None and key_separator is not None:
        raise click.UsageError("Give --format or --key-separator, not both.")
    show: formats.Part = formats.to_json
    if not session.as_json:
        separated = None if key_separator is None else f"%k{key_separator.replace('%', '%%')}%v\\n"
        show = formats.compile_format(format_ or separated or "%v\\n")
    default = BEGINNING if exit_at_end or from_beginning else END
    reader = Reader(
        session.bootstrap,
        topic,
        default if start is None else _where(start),
        partitions=partitions,
        stop_at_end=exit_at_end,
    )
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader who leaves takes us along, as others do
    with reader, suppress(KeyboardInterrupt):
        _print(reader, show, max_messages)
        return
    sys.exit(INTERRUPTED)


def _print(reader: Reader, show: formats.Part, max_messages: int | None) -> None:
    left = sys.maxsize if max_messages is None else max_messages
    out = sys.stdout.buffer
    for records in reader.batches():
        out.writelines(show(record) for record in records[:left])
        out.flush()  # all that is there has been written: a reader of the pipe waits for nothing else
        left -= len(records)
        if left <= 0:
            return


def _where(text: str) -> Start:
    if text in {"beginning", "end"}:
        return BEGINNING if text == "beginning" else END
    if _TIME.fullmatch(text):
        return Start(time_ms=_time_ms(text))
    try:
        number = int(text)
    except ValueError:
        raise click.UsageError(
            f"--from {text}: expected beginning, end, an offset, -N or a time such as 2026-01-31T12:00."
        ) from None
    return Start(last=-number) if text.startswith("-") else Start(offset=number)


def _time_ms(text: str) -> int:
    if text.startswith("@"):
        return int(text[1:])
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise click.UsageError(f"--from {text}: expected a time such as 2026-01-31T12:00:00+01:00.") from None
