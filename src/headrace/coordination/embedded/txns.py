"""Transactions: the effects of a valid request, so that a replay needs no validation.

Their encoding is that of the log; see "The embedded coordinator's files" in docs/formats.md.
"""

from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from headrace.coordination.embedded.acl import OPEN, Acl, AclList
from headrace.coordination.embedded.jute import INT, LONG, Reader, buffer, string, vector

ENTRY_HEADER: Final = Struct(">qqb")  # zxid, time, kind


class CreateNode(NamedTuple):
    path: str  # including the sequence number
    data: bytes | None
    acl: AclList
    owner: int


class DeleteNode(NamedTuple):
    path: str


class ChangeData(NamedTuple):
    path: str
    data: bytes | None
    version: int  # the new one


class ChangeAcl(NamedTuple):
    path: str
    acl: AclList
    version: int  # the new one


class Checked(NamedTuple):
    """A successful check within a multi; it changes nothing, but has its place among the results."""

    path: str


class OpenSession(NamedTuple):
    session_id: int
    timeout_ms: int
    password: bytes


class CloseSession(NamedTuple):
    """The end of a session, with its ephemeral nodes in the order in which they are deleted."""

    session_id: int
    paths: tuple[str, ...]


class Several(NamedTuple):
    """A multi: all its transactions, with one zxid."""

    txns: tuple["NodeTxn", ...]


NodeTxn = CreateNode | DeleteNode | ChangeData | ChangeAcl | Checked
Txn = NodeTxn | OpenSession | CloseSession | Several


class Entry(NamedTuple):
    """A transaction with its zxid and wall-clock time."""

    zxid: int
    time_ms: int
    txn: Txn


class Kind(IntEnum):
    CREATE = 1
    DELETE = 2
    DATA = 3
    ACL = 4
    CHECK = 5
    OPEN_SESSION = 6
    CLOSE_SESSION = 7
    SEVERAL = 8


def encode_entry(entry: Entry) -> bytes:
    kind, body = _encode(entry.txn)
    return ENTRY_HEADER.pack(entry.zxid, entry.time_ms, kind) + body


def decode_entry(reader: Reader) -> Entry:
    zxid, time_ms, kind = reader.unpack(ENTRY_HEADER)
    return Entry(zxid, time_ms, _DECODERS[kind](reader))


def encode_acl(acl: AclList) -> bytes:
    return vector(INT.pack(entry.perms) + string(entry.scheme) + string(entry.id) for entry in acl)


def decode_acl(reader: Reader) -> AclList:
    acl = tuple(reader.vector(lambda each: Acl(each.int32(), each.string(), each.string())))
    return OPEN if acl == OPEN else acl  # the constant: shared by almost all nodes, and compared quickly


def _encode(txn: Txn) -> tuple[Kind, bytes]:
    match txn:
        case ChangeData():
            return Kind.DATA, string(txn.path) + buffer(txn.data) + INT.pack(txn.version)
        case CreateNode():
            body = string(txn.path) + buffer(txn.data) + encode_acl(txn.acl) + LONG.pack(txn.owner)
            return Kind.CREATE, body
        case DeleteNode():
            return Kind.DELETE, string(txn.path)
        case Checked():
            return Kind.CHECK, string(txn.path)
        case ChangeAcl():
            return Kind.ACL, string(txn.path) + encode_acl(txn.acl) + INT.pack(txn.version)
        case OpenSession():
            body = LONG.pack(txn.session_id) + INT.pack(txn.timeout_ms) + buffer(txn.password)
            return Kind.OPEN_SESSION, body
        case CloseSession():
            return Kind.CLOSE_SESSION, LONG.pack(txn.session_id) + vector(map(string, txn.paths))
        case Several():
            return Kind.SEVERAL, vector(bytes((kind,)) + body for kind, body in map(_encode, txn.txns))


def _create(reader: Reader) -> CreateNode:
    return CreateNode(reader.string(), reader.buffer(), decode_acl(reader), reader.int64())


def _delete(reader: Reader) -> DeleteNode:
    return DeleteNode(reader.string())


def _data(reader: Reader) -> ChangeData:
    return ChangeData(reader.string(), reader.buffer(), reader.int32())


def _change_acl(reader: Reader) -> ChangeAcl:
    return ChangeAcl(reader.string(), decode_acl(reader), reader.int32())


def _checked(reader: Reader) -> Checked:
    return Checked(reader.string())


def _open_session(reader: Reader) -> OpenSession:
    return OpenSession(reader.int64(), reader.int32(), reader.buffer() or b"")


def _close_session(reader: Reader) -> CloseSession:
    return CloseSession(reader.int64(), tuple(reader.vector(Reader.string)))


def _several(reader: Reader) -> Several:
    return Several(tuple(reader.vector(lambda each: _NODE_DECODERS[each.uint8()](each))))


_NODE_DECODERS: Final[dict[int, Callable[[Reader], NodeTxn]]] = {
    Kind.CREATE: _create,
    Kind.DELETE: _delete,
    Kind.DATA: _data,
    Kind.ACL: _change_acl,
    Kind.CHECK: _checked,
}
_DECODERS: Final[dict[int, Callable[[Reader], Txn]]] = {
    **_NODE_DECODERS,
    Kind.OPEN_SESSION: _open_session,
    Kind.CLOSE_SESSION: _close_session,
    Kind.SEVERAL: _several,
}
