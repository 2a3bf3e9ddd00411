"""`headrace produce`: write records from the command line, a file or a pipe."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Final

import click

from headrace.cli import completion
from headrace.cli.support import formats
from headrace.cli.support.output import count
from headrace.cli.support.record_schemas import Encoding, no_subject
from headrace.cli.support.registry import registry_option
from headrace.cli.support.session import (
    Interrupted,
    PartlyDone,
    Session,
    acks_option,
    compression_option,
    confirm,
    existing_file,
    options,
)
from headrace.client.errors import ClientError, NoSuchTopic, Unreachable
from headrace.client.records.one_by_one import Receipt, Record, Writer


@click.command()
@click.argument("topic", shell_complete=completion.topics)
@click.argument("values", nargs=-1)
@click.option("--file", "-l", type=existing_file, help="Read this file.")
@click.option("--key", "-k", help="The key of every record.")
@click.option("--key-separator", "-K", metavar="TEXT", help=r"Each record is key, TEXT, value; \t is a tab.")
@click.option("--delimiter", "-D", default="\\n", help=r"What separates records; \0 and \x1e work too.")
@click.option("--whole", is_flag=True, help="The whole file or input is one record.")
@click.option(
    "--from-json",
    is_flag=True,
    help="Each line is an object as printed by `consume --json`; what a schema had decoded is encoded again.",
)
@click.option(
    "--header",
    "-H",
    "headers",
    metavar="NAME=VALUE",
    multiple=True,
    help="A header of every record; repeatable.",
)
@click.option(
    "--partition",
    "-p",
    type=click.IntRange(0),
    help="The partition of every record. Default: by its key, or spread.",
)
@click.option(
    "--empty-is-null", "-Z", is_flag=True, help="An empty value deletes its key from a compacted topic."
)
@acks_option
@compression_option
@click.option(
    "--create", is_flag=True, help="Create a topic that does not exist, without a question or a word."
)
@click.option("--raw", is_flag=True, help="Write bytes as they are, and ask no schema registry.")
@registry_option
@options
def produce(
    session: Session,
    /,
    *,
    topic: str,
    values: Sequence[str],
    file: Path | None,
    headers: Sequence[str],
    partition: int | None,
    acks: str,
    compression: str,
    create: bool,
    raw: bool,
    **reading: object,
) -> None:
    """Write records:  headrace produce orders first second

    Values and files are written only if all of their records can be parsed. Of a pipe, the records before a
    line that cannot be parsed are written, and the error message says how many.

    If the schema registry has a schema for the topic (TOPIC-value, TOPIC-key), values and keys are JSON, and
    are encoded by its latest version: Avro, JSON Schema or Protobuf.

    A topic that does not exist is created by the brokers, unless auto.create.topics.enable is false.

    Without values or --file, each line of the standard input is a record:

      seq 1000 | headrace produce numbers --compression zstd

      echo 'alice:{"n":1}' | headrace produce orders --key-separator :
    """
    if values and file is not None:
        raise click.UsageError("Give values or --file, not both.")
    similar = session.similar_topics(topic) if not create and _is_missing(session, topic) else None
    if similar and sys.stdin.isatty():
        confirm(
            f"there is no topic {topic}; {similar} Create {topic}?",
            action="",
            declined="nothing was written",
            yes=False,
        )
    encoding = None if raw else Encoding(session, topic)
    source = _Source(
        topic=topic,
        headers=_headers(headers),
        partition=partition,
        encoding=encoding if encoding is not None and encoding.encodes else None,
        **reading,  # type: ignore[arg-type]
    )
    tuning: dict[str, str | int] = {"acks": acks, "compression.type": compression, "linger.ms": 5}
    with ExitStack() as stack:
        stream = stack.enter_context(file.open("rb")) if file else sys.stdin.buffer
        interactive = not values and stream.isatty()
        records = source.of_values(values) if values else source.of_stream(stream)
        if interactive:
            click.echo(f"each line is a record to {topic}; Ctrl-D ends", err=True)
        try:
            receipt = _write(Writer(session.connection, topic, tuning), records, at_once=interactive)
        except ClientError as error:
            raise explain(session, topic, error) from error
    session.show(asdict(receipt), _in_short(receipt))
    if similar is not None and receipt.records:
        click.echo(f"headrace: topic {topic} did not exist and was created; {similar}".rstrip("; "), err=True)


def _is_missing(session: Session, topic: str) -> bool:
    try:
        session.topics.topic(topic)
    except NoSuchTopic as error:
        return error.topic is not None
    except ClientError:  # writing reports it
        return False
    return False


def _write(writer: Writer, records: Iterator[Record], *, at_once: bool) -> Receipt:
    try:
        for record in records:
            writer.write(record)
            if at_once:
                writer.flush()
    except formats.BadInput as error:
        written = writer.flush()
        said = f"before it, {_in_short(written)} was written" if written.records else "nothing was written"
        raise PartlyDone(f"{error.message}; {said}", {"written": asdict(written)}) from error
    except KeyboardInterrupt:
        written = writer.flush()  # a second Ctrl-C interrupts the flush
        said = _in_short(written) if written.records else "nothing was written"
        raise Interrupted(f"interrupted; {said}", {"written": asdict(written)}) from None
    return writer.flush()


def _in_short(receipt: Receipt) -> str:
    places = [
        f"partition {index} offset {first}" + (f" to {last}" if last > first else "")
        for index, (first, last) in sorted(receipt.partitions.items())
    ]
    return "; ".join([f"{count(receipt.records, 'record')} to {receipt.topic}", *places])


def _headers(texts: Sequence[str]) -> list[tuple[str, bytes | None]]:
    headers: list[tuple[str, bytes | None]] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--header {text}: expected NAME=VALUE.")
        headers.append((name, value.encode("utf-8", "surrogateescape")))
    return headers


class _Source:
    """Turns values, lines and files into records."""

    def __init__(
        self,
        *,
        topic: str,
        headers: list[tuple[str, bytes | None]],
        partition: int | None,
        encoding: Encoding | None,
        key: str | None,
        key_separator: str | None,
        delimiter: str,
        whole: bool,
        from_json: bool,
        empty_is_null: bool,
    ) -> None:
        if whole and from_json:
            raise click.UsageError("--whole and --from-json contradict each other.")
        self._blank = Record(value=None, headers=headers, partition=partition, topic=topic)
        self._key = None if key is None else key.encode("utf-8", "surrogateescape")
        self._separator = None if key_separator is None else formats.unescape(key_separator)
        self._delimiter = formats.unescape(delimiter)
        if not self._delimiter or self._separator == b"":
            raise click.UsageError("A delimiter or separator cannot be empty.")
        self._encoding = encoding
        self._whole = whole
        self._from_json = from_json
        self._empty_is_null = empty_is_null

    def of_values(self, values: Sequence[str]) -> Iterator[Record]:
        """Yield the records of all values, or raise BadInput before the first."""
        pieces = (value.encode("utf-8", "surrogateescape") for value in values)
        yield from [self._record(piece, number) for number, piece in enumerate(pieces, start=1)]

    def of_stream(self, stream: IO[bytes]) -> Iterator[Record]:
        """Yield records as they arrive; of a file, raise BadInput before the first if any is wrong."""
        may_fail = self._from_json or self._separator is not None or self._encoding is not None
        if may_fail and stream.seekable():
            beginning = stream.tell()
            for _ in self._read(stream):
                pass
            stream.seek(beginning)
        yield from self._read(stream)

    def _read(self, stream: IO[bytes]) -> Iterator[Record]:
        pieces = (
            iter([stream.read(formats.LONGEST)]) if self._whole else formats.split(stream, self._delimiter)
        )
        for number, piece in enumerate(pieces, start=1):
            yield self._record(piece, number)

    def _record(self, piece: bytes, number: int) -> Record:
        decoded: dict[str, formats.DecodedJson] = {}  # JSON that a schema encodes
        if self._from_json:
            read, decoded = formats.parse_json(piece, number)
            if self._key is not None:
                decoded.pop("key", None)
            key = read.key if self._key is None else self._key
            headers = [*read.headers, *self._blank.headers]
            record = replace(read, key=key, headers=headers, partition=self._blank.partition)
        else:
            key, value = self._key, piece
            if self._separator is not None:
                key, separator, value = piece.partition(self._separator)
                if not separator:
                    raise formats.BadInput(f"record {number} has no key separator")
            record = replace(self._blank, key=key, value=None if self._empty_is_null and not value else value)
        if self._encoding is not None:
            return self._encoding(record, number, decoded)
        if decoded:
            raise no_subject(self._blank.topic, next(iter(decoded)), number)
        return record


_BY_OFFSET: Final = "headrace.append.expected.offset"


def explain(session: Session, topic: str, error: ClientError) -> ClientError:
    """Return an error that says why records to `topic` were not written; `error` if that is all we know.

    librdkafka does not say why, so the cluster is queried.
    """
    why = _why_late if isinstance(error, Unreachable) else _why_refused
    try:
        return why(session, topic) or error
    except Unreachable as unreachable:
        return unreachable
    except ClientError:
        return error


def _why_refused(session: Session, topic: str) -> ClientError | None:
    """Return an error if the topic accepts no records from this client, whatever they are."""
    if session.admin.describe_topic(topic).internal:
        return ClientError(f"{topic} is an internal topic of the cluster: only brokers write to it")
    configs = {each.name: each.value for each in session.admin.topic_configs(topic)}
    if configs.get(_BY_OFFSET) != "true":
        return None
    return ClientError(
        f"{topic} accepts only records that name their offset ({_BY_OFFSET}=true), as the schema registry "
        "writes them: register schemas with `headrace schema register`"
    )


def _why_late(session: Session, topic: str) -> ClientError | None:
    """Return an error if a partition of the topic has no leader or too few replicas in sync."""
    status = session.cluster.status()
    for each in (*status.offline, *status.leaderless):
        if each.topic == topic:
            return ClientError(
                f"{each.topic_partition} has no leader: `headrace cluster status` shows the missing brokers"
            )
    for each in status.under_min_isr:
        if each.topic == topic:
            return ClientError(
                f"{each.topic_partition} accepts nothing with acks=all: "
                f"{count(len(each.in_sync), 'replica')} in sync, and min.insync.replicas is "
                f"{each.min_in_sync} (NOT_ENOUGH_REPLICAS)"
            )
    return None
