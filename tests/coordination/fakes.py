"""A coordinator without sockets, for unit tests: requests in, decoded replies and events out."""

from collections.abc import Callable
from itertools import count
from struct import Struct

from headrace.coordination.embedded.acl import OPEN, Acl
from headrace.coordination.embedded.authentication import Authentication
from headrace.coordination.embedded.decide import Requester
from headrace.coordination.embedded.handlers import answer
from headrace.coordination.embedded.jute import INT, LONG, Reader, buffer, string
from headrace.coordination.embedded.requests import HEADER, Connect, Op
from headrace.coordination.embedded.service import Service
from headrace.coordination.embedded.state import CoordinatorState
from headrace.coordination.embedded.txns import Entry, OpenSession, encode_acl
from headrace.security.sasl.digest_md5 import DigestMd5Server

REPLY = Struct(">iqi")


class FakeClient:
    """Collects what it is told: ("reply", error, body) and ("event", type, path), in order."""

    def __init__(self, service: Service, address: str = "127.0.0.1") -> None:
        self.service = service
        self.address = address
        self.requester = Requester(0, ())
        self.is_authenticated = False
        self.sasl: DigestMd5Server | None = None
        self.unopened: OpenSession | None = None
        self.messages: list[bytes] = []
        self.closed = False
        self._xids = count(1)

    def send(self, message: bytes) -> None:
        self.messages.append(message)

    def close(self) -> None:
        self.closed = True

    def connect(
        self, timeout_ms: int = 1000, session_id: int = 0, password: bytes = b"", last_zxid: int = 0
    ) -> tuple[int, int, bytes]:
        """Returns timeout, session id and password."""
        self.service.connect(self, Connect(last_zxid, timeout_ms, session_id, password, True))
        if not self.messages:
            return 0, 0, b""
        reader = Reader(self.messages.pop(), 4)
        _, timeout, session = reader.int32(), reader.int32(), reader.int64()
        return timeout, session, reader.buffer() or b""

    def ask(self, op: int, body: bytes = b"") -> list[tuple[object, ...]]:
        """What arrives while one request is answered."""
        answer(self.service, self, HEADER.pack(next(self._xids), op) + body)
        return self.heard()

    def heard(self) -> list[tuple[object, ...]]:
        heard = [_decoded(message) for message in self.messages]
        self.messages.clear()
        return heard

    def create(
        self, path: str, data: bytes = b"", acl: tuple[Acl, ...] = OPEN, flags: int = 0
    ) -> list[tuple[object, ...]]:
        return self.ask(Op.CREATE, create_body(path, data, acl, flags))

    def set(self, path: str, data: bytes, version: int = -1) -> list[tuple[object, ...]]:
        return self.ask(Op.SET_DATA, string(path) + buffer(data) + INT.pack(version))

    def watch(self, op: Op, path: str) -> list[tuple[object, ...]]:
        return self.ask(op, string(path) + b"\1")


class World:
    """A service with clocks that tests turn, and the entries it logged."""

    def __init__(
        self, state: CoordinatorState | None = None, authentication: Authentication | None = None
    ) -> None:
        self.now_ms = 0.0
        self.entries: list[Entry] = []
        self.bugs: list[BaseException] = []
        self.state = state or CoordinatorState(tick_ms=100)
        self.service = Service(
            self.state,
            write=self.entries.append,
            wall_ms=lambda: int(self.now_ms),
            monotonic_ms=lambda: self.now_ms,
            random_bytes=_counting_bytes(),
            broken=self.bugs.append,
            authentication=authentication,
        )

    def client(self, timeout_ms: int = 1000) -> FakeClient:
        client = FakeClient(self.service)
        client.connect(timeout_ms)
        return client


def create_body(path: str, data: bytes = b"", acl: tuple[Acl, ...] = OPEN, flags: int = 0) -> bytes:
    return string(path) + buffer(data) + encode_acl(acl) + INT.pack(flags)


def set_watches_body(zxid: int, *paths: list[str]) -> bytes:
    vectors = (INT.pack(len(each)) + b"".join(map(string, each)) for each in paths)
    return LONG.pack(zxid) + b"".join(vectors)


def _decoded(message: bytes) -> tuple[object, ...]:
    reader = Reader(message, 4)
    xid, _zxid, error = reader.unpack(REPLY)
    if xid == -1:
        kind, _state = reader.int32(), reader.int32()
        return "event", kind, reader.string()
    return "reply", error, message[reader.position :]


def _counting_bytes() -> Callable[[int], bytes]:
    numbers = count(1)
    return lambda size: next(numbers).to_bytes(size, "big")
