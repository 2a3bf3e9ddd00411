"""Requests of clients: an op code, then fields in jute. There is a class per layout, and a table of decoders.

Supported is what brokers and the tools of an operator need. Containers, persistent and recursive watches,
getEphemerals, getAllChildrenNumber and whoAmI are refused with UNIMPLEMENTED, and so are reconfig (there is
no ensemble), createTTL (disabled in ZooKeeper by default), and checkWatches (which no client sends).
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
    MULTI_READ = 22
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    CLOSE = -11


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


class Auth(NamedTuple):
    scheme: str
    credentials: bytes


class Sasl(NamedTuple):
    token: bytes


class Empty(NamedTuple):
    """ping and close have no fields."""


Write = Create | Delete | SetData | SetAcl | Check
Request = Write | Multi | Read | SetWatches | Auth | Sasl | Empty

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


_WRITES = frozenset({Op.CREATE, Op.CREATE2, Op.DELETE, Op.SET_DATA, Op.CHECK})
_READS = frozenset({Op.GET_DATA, Op.GET_CHILDREN})

_create = _fields(Create, Reader.string, Reader.buffer, _acl, Reader.int32)
_path = _fields(Read, Reader.string)
_path_and_watch = _fields(Read, Reader.string, Reader.boolean)
_nothing = _fields(Empty)
_DECODERS: Final[dict[Op, Callable[[Reader], Request]]] = {
    Op.CREATE: _create,
    Op.CREATE2: _create,
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
    Op.AUTH: _auth,
    Op.SASL: lambda reader: Sasl(reader.buffer() or b""),
    Op.SET_WATCHES: _fields(SetWatches, Reader.int64, _paths, _paths, _paths),
    Op.CLOSE: _nothing,
}
