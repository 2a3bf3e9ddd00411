"""Requests of clients: an op code, then fields in jute. There is a class per layout, and a table of decoders.

Not supported: reconfig (there is no ensemble), createTTL (disabled in ZooKeeper by default), and checkWatches
(which no client sends). They are refused with UNIMPLEMENTED.
"""

from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Any, Final, NamedTuple

from headrace.coordination.embedded.acl import Acl
from headrace.coordination.embedded.errors import MalformedRequest
from headrace.coordination.embedded.jute import Reader

HEADER: Final = Struct(">ii")


class Op(IntEnum):
    """ZooKeeper's ZooDefs.OpCode."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN2 = 12
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    REMOVE_WATCHES = 18
    CREATE_CONTAINER = 19
    MULTI_READ = 22
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    GET_EPHEMERALS = 103
    GET_ALL_CHILDREN_NUMBER = 104
    SET_WATCHES2 = 105
    ADD_WATCH = 106
    WHO_AM_I = 107
    CLOSE = -11


class Xid(IntEnum):
    """Special xids of messages that are not replies to numbered requests."""

    EVENT = -1
    PING = -2
    AUTH = -4


class Connect(NamedTuple):
    last_zxid: int
    timeout_ms: int
    session_id: int
    password: bytes
    knows_read_only: bool  # clients before 3.4 neither send that byte nor expect one


class Create(NamedTuple):
    path: str
    data: bytes | None
    acl: list[Acl]
    flags: int


class Delete(NamedTuple):
    path: str
    version: int


class SetData(NamedTuple):
    path: str
    data: bytes | None
    version: int


class SetAcl(NamedTuple):
    path: str
    acl: list[Acl]
    version: int


class Check(NamedTuple):
    path: str
    version: int


class Multi(NamedTuple):
    operations: list[tuple[Op, "Request"]]


class Read(NamedTuple):
    """exists, getData, getACL, getChildren, sync and similar: a path, and optionally a watch."""

    path: str
    watch: bool = False


class SetWatches(NamedTuple):
    relative_zxid: int
    data: list[str]
    exist: list[str]
    child: list[str]
    persistent: list[str]
    recursive: list[str]


class WatchMode(NamedTuple):
    """addWatch: mode 0 persistent, 1 recursive. removeWatches: 1 child, 2 data, 3 any."""

    path: str
    mode: int


class Auth(NamedTuple):
    scheme: str
    credentials: bytes


class Sasl(NamedTuple):
    token: bytes


class Empty(NamedTuple):
    """ping and close have no fields."""


Write = Create | Delete | SetData | SetAcl | Check
Request = Write | Multi | Read | SetWatches | WatchMode | Auth | Sasl | Empty

_CONNECT: Final = Struct(">iqiq")


def decode_connect(frame: bytes) -> Connect:
    """Decode the first message of a connection."""
    reader = Reader(frame)
    _protocol_version, last_zxid, timeout_ms, session_id = reader.unpack(_CONNECT)
    password = reader.buffer() or b""
    knows_read_only = reader.left > 0
    return Connect(last_zxid, timeout_ms, session_id, password, knows_read_only)


def decode_request(op: Op, reader: Reader) -> Request:
    return _DECODERS[op](reader)


def _acl(reader: Reader) -> list[Acl]:
    return reader.vector(lambda each: Acl(each.int32(), each.string(), each.string()))


def _paths(reader: Reader) -> list[str]:
    return reader.vector(Reader.string)


def _set_watches(reader: Reader) -> SetWatches:
    return SetWatches(reader.int64(), _paths(reader), _paths(reader), _paths(reader), [], [])


def _auth(reader: Reader) -> Auth:
    reader.int32()  # an unused type
    return Auth(reader.string(), reader.buffer() or b"")


def _fields(request: Callable[..., Request], *fields: Callable[[Reader], Any]) -> Callable[[Reader], Request]:
    """Return the decoder of a request that has these fields, in this order."""
    return lambda reader: request(*(read(reader) for read in fields))


def _operations(allowed: frozenset[Op]) -> Callable[[Reader], Multi]:
    def decode(reader: Reader) -> Multi:
        operations: list[tuple[Op, Request]] = []
        while True:  # each iteration reads nine bytes or raises
            number, done, _error = reader.int32(), reader.boolean(), reader.int32()
            if done:
                return Multi(operations)
            if number not in allowed:
                raise MalformedRequest(f"operation {number} within a multi")
            operations.append((Op(number), decode_request(Op(number), reader)))

    return decode


_WRITES = frozenset({Op.CREATE, Op.CREATE2, Op.CREATE_CONTAINER, Op.DELETE, Op.SET_DATA, Op.CHECK})
_READS = frozenset({Op.GET_DATA, Op.GET_CHILDREN})

_create = _fields(Create, Reader.string, Reader.buffer, _acl, Reader.int32)
_path = _fields(Read, Reader.string)
_path_and_watch = _fields(Read, Reader.string, Reader.boolean)
_watch_mode = _fields(WatchMode, Reader.string, Reader.int32)
_nothing = _fields(Empty)
_DECODERS: Final[dict[Op, Callable[[Reader], Request]]] = {
    Op.CREATE: _create,
    Op.CREATE2: _create,
    Op.CREATE_CONTAINER: _create,
    Op.DELETE: _fields(Delete, Reader.string, Reader.int32),
    Op.EXISTS: _path_and_watch,
    Op.GET_DATA: _path_and_watch,
    Op.SET_DATA: _fields(SetData, Reader.string, Reader.buffer, Reader.int32),
    Op.GET_ACL: _path,
    Op.SET_ACL: _fields(SetAcl, Reader.string, _acl, Reader.int32),
    Op.GET_CHILDREN: _path_and_watch,
    Op.GET_CHILDREN2: _path_and_watch,
    Op.SYNC: _path,
    Op.PING: _nothing,
    Op.CHECK: _fields(Check, Reader.string, Reader.int32),
    Op.MULTI: _operations(_WRITES),
    Op.MULTI_READ: _operations(_READS),
    Op.REMOVE_WATCHES: _watch_mode,
    Op.AUTH: _auth,
    Op.SASL: lambda reader: Sasl(reader.buffer() or b""),
    Op.SET_WATCHES: _set_watches,
    Op.SET_WATCHES2: _fields(SetWatches, Reader.int64, *[_paths] * 5),
    Op.ADD_WATCH: _watch_mode,
    Op.GET_EPHEMERALS: _path,
    Op.GET_ALL_CHILDREN_NUMBER: _path,
    Op.WHO_AM_I: _nothing,
    Op.CLOSE: _nothing,
}
