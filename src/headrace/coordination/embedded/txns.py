"""Transactions: the effects of a valid request, so that a replay needs no validation.

Their encoding is that of the log; see "The embedded coordinator's files" in docs/formats.md.
"""

from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Any, Final, NamedTuple

from headrace.coordination.embedded.acl import OPEN, Acl, AclList
from headrace.coordination.embedded.errors import MalformedRequest
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
    return Entry(zxid, time_ms, _decode(kind, reader))


def encode_acl(acl: AclList) -> bytes:
    return vector(INT.pack(entry.perms) + string(entry.scheme) + string(entry.id) for entry in acl)


def decode_acl(reader: Reader) -> AclList:
    acl = tuple(reader.vector(lambda each: Acl(each.int32(), each.string(), each.string())))
    return OPEN if acl == OPEN else acl  # the constant: shared by almost all nodes, and compared quickly


def _encode(txn: Txn) -> tuple[Kind, bytes]:
    kind, fields = _LAYOUTS[type(txn)]
    return kind, b"".join(field.encode(value) for field, value in zip(fields, txn, strict=True))


def _decode(kind: int, reader: Reader) -> Any:
    txn, fields = _TXNS[kind]
    return txn(*(field.decode(reader) for field in fields))


def _decode_part(reader: Reader) -> NodeTxn:
    kind = reader.uint8()
    if kind > Kind.CHECK:
        raise MalformedRequest(f"a transaction of kind {kind} within a multi")
    part: NodeTxn = _decode(kind, reader)
    return part


class _Field(NamedTuple):
    encode: Callable[[Any], bytes]
    decode: Callable[[Reader], Any]


_INT: Final = _Field(INT.pack, Reader.int32)
_LONG: Final = _Field(LONG.pack, Reader.int64)
_PATH: Final = _Field(string, Reader.string)
_PATHS: Final = _Field(
    lambda paths: vector(map(string, paths)), lambda each: tuple(each.vector(Reader.string))
)
_DATA: Final = _Field(buffer, Reader.buffer)
_PASSWORD: Final = _Field(buffer, lambda reader: reader.buffer() or b"")
_ACL: Final = _Field(encode_acl, decode_acl)
_PARTS: Final = _Field(
    lambda txns: vector(bytes((kind,)) + body for kind, body in map(_encode, txns)),
    lambda reader: tuple(reader.vector(_decode_part)),
)

_LAYOUTS: Final[dict[type[Txn], tuple[Kind, tuple[_Field, ...]]]] = {
    CreateNode: (Kind.CREATE, (_PATH, _DATA, _ACL, _LONG)),
    DeleteNode: (Kind.DELETE, (_PATH,)),
    ChangeData: (Kind.DATA, (_PATH, _DATA, _INT)),
    ChangeAcl: (Kind.ACL, (_PATH, _ACL, _INT)),
    Checked: (Kind.CHECK, (_PATH,)),
    OpenSession: (Kind.OPEN_SESSION, (_LONG, _INT, _PASSWORD)),
    CloseSession: (Kind.CLOSE_SESSION, (_LONG, _PATHS)),
    Several: (Kind.SEVERAL, (_PARTS,)),
}
_TXNS: Final[dict[int, tuple[Callable[..., Txn], tuple[_Field, ...]]]] = {
    kind: (txn, fields) for txn, (kind, fields) in _LAYOUTS.items()
}
