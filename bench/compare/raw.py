"""Raw requests: what the brokers do, with no client library in between."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

from compare.drive import Driven, Source, drive
from compare.servers import Server
from compare.table import Expected, Figures, Line
from compare.wire import ERROR_AT, KIB, MIB, Batch, FetchTemplate, make_batch, produce_request, topic_id
from headrace.protocol.api import ApiKey

GB: Final = 1e9
MB: Final = 1e6
MAX_BYTES: Final = 384 * MIB  # of one round: the disk and its cache are shared by both brokers
FETCHED_BYTES: Final = 64 * MIB  # what a Fetch line walks through, over and over
_names: Final = (f"raw-{number}" for number in count())


class ProduceSource:
    def __init__(self, request: bytes, size: int) -> None:
        self._request = request
        self._size = size

    def next(self) -> bytes:
        return self._request

    def answered(self, frame: memoryview) -> int:
        error = _error(frame, ApiKey.PRODUCE)
        assert not error, f"Produce was answered with error {error}"
        return self._size


class FetchSource:
    """Walks through a log of equal batches from batch `first` on, one batch a request, over and over."""

    def __init__(self, template: FetchTemplate, batch: Batch, batches: int, first: int) -> None:
        self._template = template
        self._size = len(batch.data)
        self._offsets = (number % batches * batch.records for number in count(first))

    def next(self) -> bytes:
        return self._template.at(next(self._offsets))

    def answered(self, frame: memoryview) -> int:
        error = _error(frame, ApiKey.FETCH)
        assert not error, f"Fetch was answered with error {error}"
        assert self._size < len(frame) < self._size + KIB, f"{len(frame)} bytes for a batch of {self._size}"
        return self._size


def _error(frame: memoryview, key: ApiKey) -> int:
    at = ERROR_AT[key]
    return int.from_bytes(frame[at : at + 2], "big")


class RawLine:
    """One line on both brokers: a batch, the connections it goes over, and a topic."""

    def __init__(self, batch: Batch, connections: int, depth: int, seconds: float) -> None:
        self._batch = batch
        self._batches = FETCHED_BYTES // len(batch.data)
        self._connections = connections
        self._depth = depth
        self._seconds = seconds
        self._topic = next(_names)

    def produce(self, server: Server) -> Figures:
        """A round into a new topic, so that disk and page cache get back what the last one took."""
        topic = next(_names)
        with _created(server, topic) as id_:
            request = produce_request(id_, self._batch)
            return self._measured(server, lambda _number: ProduceSource(request, len(self._batch.data)))

    def prepare_to_fetch(self, server: Server) -> None:
        server.create_topic(self._topic)
        request = produce_request(topic_id(server.address, self._topic), self._batch)
        written = drive(
            server.load,
            lambda _number: ProduceSource(request, len(self._batch.data)),
            connections=1,
            depth=1,
            seconds=60,
            max_bytes=self._batches * len(self._batch.data),
        )
        assert written.requests >= self._batches, f"wrote {written.requests} of {self._batches} batches"

    def fetch(self, server: Server) -> Figures:
        """A round in which every connection reads the whole log, each from another place."""
        id_ = topic_id(server.address, self._topic)

        def source(number: int) -> FetchSource:
            first = number * self._batches // self._connections
            return FetchSource(FetchTemplate(id_, len(self._batch.data)), self._batch, self._batches, first)

        return self._measured(server, source)

    def finish(self, server: Server) -> None:
        server.delete_topic(self._topic)

    def _measured(self, server: Server, make_source: Callable[[int], Source]) -> Figures:
        cpu = server.cpu_seconds()
        driven = drive(
            server.load,
            make_source,
            connections=self._connections,
            depth=self._depth,
            seconds=self._seconds,
            max_bytes=MAX_BYTES,
        )
        return _figures(driven, server.cpu_seconds() - cpu)


@contextmanager
def _created(server: Server, topic: str) -> Iterator[bytes]:
    server.create_topic(topic)
    yield topic_id(server.address, topic)
    server.delete_topic(topic)


def _figures(driven: Driven, cpu: float) -> Figures:
    return {
        "requests/s": driven.requests / driven.seconds,
        "MB/s": driven.data_bytes / driven.seconds / MB,
        "CPU us/request": cpu / driven.requests * 1e6,
        "CPU s/GB": cpu / driven.data_bytes * GB,
    }


def warm_up(server: Server, seconds: float) -> None:
    """Load before the first line, of all kinds: Kafka's JVM compiles what it sees often."""
    for batch in (make_batch(1, record_size=100), make_batch(16 * KIB)):
        RawLine(batch, 4, 5, seconds / 3).produce(server)
    line = RawLine(make_batch(16 * KIB), 4, 1, seconds / 3)
    line.prepare_to_fetch(server)
    line.fetch(server)
    line.finish(server)


def lines(seconds: float) -> Iterator[Line[Server]]:
    small = make_batch(1, record_size=100)
    yield produce_line("100 B", small, 1, 1, seconds)
    yield produce_line("100 B", small, 4, 5, seconds)
    yield produce_line("16 KiB", make_batch(16 * KIB), 1, 5, seconds, speed=1.3)
    yield produce_line("16 KiB", make_batch(16 * KIB), 4, 5, seconds, speed=1.3)
    yield produce_line("128 KiB", make_batch(128 * KIB), 1, 5, seconds)
    yield produce_line("1 MiB", make_batch(MIB), 1, 5, seconds)
    yield fetch_line("16 KiB", make_batch(16 * KIB), 1, seconds)
    yield fetch_line("16 KiB", make_batch(16 * KIB), 4, seconds)
    yield fetch_line("128 KiB", make_batch(128 * KIB), 1, seconds)
    yield fetch_line("1 MiB", make_batch(MIB), 1, seconds)


def produce_line(
    size: str,
    batch: Batch,
    connections: int,
    depth: int,
    seconds: float,
    *,
    speed: float = 1.0,
    cpu: float | None = 0.8,
    kind: str = "raw",
) -> Line[Server]:
    raw = RawLine(batch, connections, depth, seconds)
    return Line(
        name=f"{kind} produce {size}, {connections} conn x {depth} in flight",
        run=raw.produce,
        expected=_expected(len(batch.data), speed=speed, cpu=cpu),
    )


def fetch_line(
    size: str, batch: Batch, connections: int, seconds: float, *, cpu: float | None = 1.2, kind: str = "raw"
) -> Line[Server]:
    raw = RawLine(batch, connections, 1, seconds)
    return Line(
        name=f"{kind} fetch {size}, {connections} conn",
        prepare=raw.prepare_to_fetch,
        run=raw.fetch,
        finish=raw.finish,
        expected=_expected(len(batch.data), speed=1.0, cpu=cpu),
    )


def _expected(size: int, *, speed: float, cpu: float | None) -> list[Expected]:
    if size < 64 * KIB:  # many requests: what counts is the cost of each
        return [
            Expected(figure="requests/s", at_least=speed, beside="MB/s"),
            Expected(figure="CPU us/request", at_most=cpu, beside="CPU s/GB"),
        ]
    return [
        Expected(figure="MB/s", at_least=speed, beside="requests/s"),
        Expected(figure="CPU s/GB", at_most=cpu, beside="CPU us/request"),
    ]
