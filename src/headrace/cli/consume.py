"""`headrace consume`: print the records of topics, alone or as a member of a group."""

import re
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Final, Literal

import click

from headrace.cli import completion
from headrace.cli.support import formats
from headrace.cli.support.interrupts import STOPPING
from headrace.cli.support.record_schemas import Decoding, warn
from headrace.cli.support.registry import registry_option
from headrace.cli.support.session import INTERRUPTED, Session, options, partition_option, time_ms
from headrace.client.records.group_reader import GroupReader
from headrace.client.records.one_by_one import BEGINNING, END, Reader, Record, Start

_TIME: Final = re.compile(r"@\d+|-\d+[smhd]|\d{4}-\d\d-\d\d.*")


@click.command()
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True, shell_complete=completion.topics)
@click.option(
    "--from",
    "-o",
    "start",
    metavar="WHERE",
    help="beginning; end; an offset; -N: the last N of each partition; a time, as 2026-01-31T12:00, @MS, or "
    "-1h: an hour ago (s, m, h, d). Default: end, or beginning with --exit-at-end or --to.",
)
@click.option(
    "--to",
    "stop",
    metavar="WHERE",
    help="Exit at the end of all partitions, and print only what comes before this offset, -N or time.",
)
@click.option("--from-beginning", is_flag=True, help="The same as --from beginning.")
@partition_option
@click.option("--max-messages", "-n", "-c", type=click.IntRange(1), help="Exit after so many records.")
@click.option("--exit-at-end", "-e", is_flag=True, help="Exit at the end of all partitions.")
@click.option(
    "--group",
    "-G",
    metavar="NAME",
    shell_complete=completion.groups,
    help="Join this group, and commit the offsets of printed records.",
)
@click.option(
    "--group-protocol",
    type=click.Choice(["classic", "consumer"]),
    default="classic",
    help="consumer is the newer one (KIP-848).",
)
@click.option(
    "--instance-id", metavar="NAME", help="A static member: it keeps its partitions over a restart."
)
@click.option("--key-separator", "-K", metavar="TEXT", help="Print key, TEXT, value.")
@click.option("--raw", is_flag=True, help="Print bytes as they are, and ask no schema registry.")
@click.option(
    "--format",
    "-f",
    "format_",
    metavar="FORMAT",
    help=r"%k key, %v value, %p partition, %o offset, %t topic, %T time, %m time in milliseconds, "
    r"%h headers, %K and %S sizes, \n \t \0 \xff. Default: %v\n.",
)
@registry_option
@options
def consume(
    session: Session,
    *,
    topics: Sequence[str],
    start: str | None,
    stop: str | None,
    indexes: Sequence[int],
    max_messages: int | None,
    group: str | None,
    group_protocol: Literal["classic", "consumer"],
    instance_id: str | None,
    key_separator: str | None,
    format_: str | None,
    from_beginning: bool,
    exit_at_end: bool,
    raw: bool,
) -> None:
    r"""Print records:  headrace consume orders --from beginning

    With --group, start at the committed offsets, and share the partitions with the other members. A group can
    read several topics, or '^orders.*' for all that match. The offsets of printed records are committed;
    --from applies only to partitions without a committed offset. Without --group nothing is committed. --json
    prints one object per line.

    Keys and values that name a schema of the registry (Avro, JSON Schema, Protobuf) are printed as JSON.

      headrace consume orders payments --group billing --from beginning

      headrace consume orders --exit-at-end --format '%p %o %k=%v\n'

      headrace consume orders --from -1h --to -30m --format '%T %v\n'
    """
    if start is not None and from_beginning:
        raise click.UsageError("Give --from or --from-beginning, not both.")
    show = _show(session, format_, key_separator, raw=raw)
    default = BEGINNING if exit_at_end or from_beginning or stop is not None else END
    where = default if start is None else _where(start, "--from")
    end = None if stop is None else _where(stop, "--to")
    if group is None:
        if len(topics) > 1 or instance_id is not None:
            raise click.UsageError("Several topics, and --instance-id, need a --group.")
        reader = Reader(
            session.connection,
            topics[0],
            where,
            end=end,
            partitions=indexes,
            stop_at_end=exit_at_end or end is not None,
        )
        if where == END and not exit_at_end and sys.stderr.isatty():
            click.echo("new records appear here; --from beginning prints all, Ctrl-C ends", err=True)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a closed pipe ends us, as it ends other programs
        with reader, suppress(KeyboardInterrupt):
            _print(reader.batches(), show, max_messages)
            return
        sys.exit(INTERRUPTED)
    if indexes or where not in {BEGINNING, END} or end is not None:
        raise click.UsageError(
            "A --group has its own partitions and offsets: leave out --partition and --to, and --from can "
            "only be beginning or end. `headrace group reset-offsets` changes the offsets of a group."
        )
    member = GroupReader(
        session.connection,
        group,
        topics,
        from_beginning=where == BEGINNING,
        stop_at_end=exit_at_end,
        protocol=group_protocol,
        instance_id=instance_id,
        on_idle=_print_idle,
    )
    _as_member(member, show, max_messages)


def _show(session: Session, format_: str | None, key_separator: str | None, *, raw: bool) -> formats.Part:
    if format_ is not None and key_separator is not None:
        raise click.UsageError("Give --format or --key-separator, not both.")
    separated = None if key_separator is None else f"%k{key_separator.replace('%', '%%')}%v\\n"
    part = formats.compile_format(format_ or separated or "%v\\n")
    if raw:
        return (lambda record: formats.to_json(formats.Shown(record))) if session.as_json else part
    show = formats.to_json if session.as_json else formats.format_shown(part)
    decoded = Decoding(session, warn)
    return lambda record: show(decoded(record))


def _as_member(reader: GroupReader, show: formats.Part, max_messages: int | None) -> None:
    """Print, commit, and leave the group, also when a signal or a broken pipe ends the command."""
    stopped_by = 0

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal stopped_by
        if stopped_by:  # the second signal does not wait for the records that are being printed
            raise KeyboardInterrupt
        stopped_by = number
        reader.stop()

    for number in STOPPING:
        signal.signal(number, stop)
    with reader, suppress(KeyboardInterrupt):
        try:
            _print(reader.record_batches(), show, max_messages, reader.done)
        except BrokenPipeError:
            stopped_by = signal.SIGPIPE
    if stopped_by == signal.SIGPIPE:  # now it may end us, as it ends other programs
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)
    if stopped_by:
        sys.exit(INTERRUPTED - signal.SIGINT + stopped_by)


def _print_idle() -> None:
    if sys.stderr.isatty():  # a person should know why no records arrive
        click.echo("this member has no partition; it waits until another member leaves", err=True)


def _print(
    batches: Iterable[list[Record]],
    show: formats.Part,
    max_messages: int | None,
    done: Callable[[list[Record]], None] = lambda _: None,
) -> None:
    left = sys.maxsize if max_messages is None else max_messages
    out = sys.stdout.buffer
    for records in batches:
        printed = records[:left]
        out.writelines(map(show, printed))
        out.flush()  # the next records may take a while, and a reader of the pipe should not wait
        done(printed)
        left -= len(printed)
        if left <= 0:
            return


def _where(text: str, option: str) -> Start:
    if text in {"beginning", "end"}:
        return BEGINNING if text == "beginning" else END
    if _TIME.fullmatch(text):
        return Start(time_ms=time_ms(text, option))
    try:
        number = int(text)
    except ValueError:
        raise click.UsageError(
            f"{option} {text}: expected beginning, end, an offset, -N or a time, as 2026-01-31T12:00 or -1h."
        ) from None
    return Start(last=-number) if text.startswith("-") else Start(offset=number)
