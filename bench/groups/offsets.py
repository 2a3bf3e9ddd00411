"""OffsetCommit and OffsetFetch on raw connections: how many a second, and what each costs the broker."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from compare.drive import Driven, drive
from compare.servers import Server
from compare.table import Figures
from compare.wire import VERSIONS, ask, request
from groups.coordinator import commit_request, fetch_request, find
from groups.membership import Topic
from groups.progress import progress
from groups.table import Case
from headrace.protocol.api import ApiKey, response_class
from headrace.protocol.errors import ErrorCode
from headrace.protocol.headers import decode_response_header
from headrace.protocol.message import Message

GROUP: Final = "bench"
PARTITIONS: Final = 100
NO_LIMIT: Final = 1 << 62  # `drive` counts bytes of records, and there are none
LOADS: Final = (  # partitions in a request, connections, requests in flight on each
    (1, 1, 1),
    (1, 1, 20),
    (1, 4, 5),
    (PARTITIONS, 1, 5),
)


class SameAnswer:
    """One request over and over; every answer has to be the first one's bytes, and that one without error."""

    def __init__(self, key: ApiKey, frame: bytes) -> None:
        self._key = key
        self._frame = frame
        self._expected = b""

    def next(self) -> bytes:
        return self._frame

    def answered(self, frame: memoryview) -> int:
        if frame != self._expected:
            assert not self._expected, f"{self._key.name} was answered differently than before"
            self._expected = bytes(frame)
            _, body = decode_response_header(self._key, VERSIONS[self._key], frame)
            errors = _errors(response_class(self._key).decode(body, VERSIONS[self._key]))
            assert not errors, f"{self._key.name} was answered with {errors}"
        return 1


def _errors(answer: object) -> set[str]:
    """The names of all error codes in an answer but 0, at whatever depth."""
    found = {ErrorCode(getattr(answer, "error_code", 0)).name} - {"NONE"}
    for inner in ("groups", "topics", "partitions"):
        for each in getattr(answer, inner, ()):
            found |= _errors(each)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Offsets:
    """A kind of request with 1 or many partitions, in turns with more connections and more in flight."""

    key: ApiKey
    make: Callable[[str, Topic, int], Message]
    warm_up_s: float
    seconds: float

    def run(self, server: Server) -> Figures:
        find(server.address, GROUP)
        topic = Topic.made(server, "committed", PARTITIONS)
        ask(server.address, commit_request(GROUP, topic, PARTITIONS))
        figures: dict[str, float] = {}
        for partitions, connections, depth in LOADS:
            load = f"{partitions} part, {connections} x {depth}"
            frame = request(self.key, self.make(GROUP, topic, partitions))
            progress(f"{self.key.name} {load}")
            figures |= self._measured(server, frame, connections, depth, load)
        return figures

    def _measured(self, server: Server, frame: bytes, connections: int, depth: int, load: str) -> Figures:
        self._drive(server, frame, connections, depth, self.warm_up_s)
        cpu = server.cpu_seconds()
        done = self._drive(server, frame, connections, depth, self.seconds)
        cpu = server.cpu_seconds() - cpu
        return {f"{load}: 1/s": done.requests / done.seconds, f"{load}: CPU us": cpu / done.requests * 1e6}

    def _drive(self, server: Server, frame: bytes, connections: int, depth: int, seconds: float) -> Driven:
        return drive(
            server.load,
            lambda _number: SameAnswer(self.key, frame),
            connections=connections,
            depth=depth,
            seconds=seconds,
            max_bytes=NO_LIMIT,
        )


def cases(*, quick: bool) -> Iterator[Case]:
    warm_up_s, seconds = (2, 2) if quick else (8, 5)
    yield Case(
        name="OffsetCommit, one group",
        run=Offsets(key=ApiKey.OFFSET_COMMIT, make=commit_request, warm_up_s=warm_up_s, seconds=seconds).run,
    )
    yield Case(
        name="OffsetFetch, one group",
        run=Offsets(key=ApiKey.OFFSET_FETCH, make=fetch_request, warm_up_s=warm_up_s, seconds=seconds).run,
    )
