"""The handlers of requests: one function for each op or group of ops, and a table of all."""

from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any, Final

from headrace.coordination.embedded import acl as access
from headrace.coordination.embedded import requests
from headrace.coordination.embedded.acl import masked
from headrace.coordination.embedded.decide import MultiFailed, decide, decide_multi
from headrace.coordination.embedded.errors import ErrorCode, KeeperError, MalformedRequest
from headrace.coordination.embedded.jute import INT, NULL, Reader, buffer, frame, string, vector
from headrace.coordination.embedded.node import Znode
from headrace.coordination.embedded.service import REPLY, Client, Service, event_message
from headrace.coordination.embedded.tree import Applied, EventType
from headrace.coordination.embedded.txns import encode_acl
from headrace.coordination.embedded.watches import Mode

MAX_MULTI_READ: Final = 8 << 20
"""Bytes in one multi-read reply; a request could read the same megabyte fifty thousand times."""

Handler = Callable[[Service, Client, requests.Op, Any], bytes]

_HANDLERS: Final[dict[int, tuple[requests.Op, Handler]]] = {}
_MULTI: Final = Struct(">i?i")  # op, done, error
_NO_OP: Final = -1
_AUTHENTICATING: Final = frozenset({requests.Op.AUTH, requests.Op.SASL})
_CLOSING: Final = frozenset({ErrorCode.AUTH_FAILED, ErrorCode.SESSION_CLOSED_REQUIRE_SASL_AUTH})
_MULTI_END: Final = _MULTI.pack(_NO_OP, True, -1)


def answer(service: Service, client: Client, message: bytes) -> None:
    """Handle a request and send the reply; raise MalformedRequest if it has no header."""
    reader = Reader(message)
    xid, number = reader.unpack(requests.HEADER)
    service.heard_of(client)
    code, body = ErrorCode.OK, b""
    op, handler = _HANDLERS.get(number, _UNKNOWN)
    try:
        if op not in _AUTHENTICATING:
            service.authentication.require(client)
        body = handler(service, client, op, requests.decode_request(op, reader))
    except KeeperError as refusal:
        code, body = (
            refusal.code,
            NULL if op is requests.Op.SASL else b"",
        )  # Java's client expects a token there
    except MalformedRequest:
        code = ErrorCode.MARSHALLING_ERROR
    client.send(frame(REPLY.pack(xid, service.state.zxid, code), body))
    if op is requests.Op.CLOSE or code in _CLOSING:
        client.close()


def handles(*ops: requests.Op) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        _HANDLERS.update((int(op), (op, handler)) for op in ops)
        return handler

    return register


@handles(
    requests.Op.CREATE, requests.Op.CREATE2, requests.Op.DELETE, requests.Op.SET_DATA, requests.Op.SET_ACL
)
def write(service: Service, client: Client, op: requests.Op, request: requests.Write) -> bytes:
    txn = decide(request, service.state.tree.nodes, client.requester)
    return _result(op, service.submit(txn)[0])


@handles(requests.Op.CHECK)
def check(service: Service, client: Client, _op: requests.Op, request: requests.Write) -> bytes:
    decide(request, service.state.tree.nodes, client.requester)
    return b""


@handles(requests.Op.MULTI)
def multi(service: Service, client: Client, _op: requests.Op, request: requests.Multi) -> bytes:
    """Apply all operations or none; if none, the reply is still OK and has the error of each operation."""
    try:
        txn = decide_multi(request, service.state.tree.nodes, client.requester)
    except MultiFailed as refused:
        return b"".join(_multi_error(code) for code in refused.codes()) + _MULTI_END
    results = zip((op for op, _ in request.operations), service.submit(txn), strict=True)
    return b"".join(_MULTI.pack(op, False, 0) + _result(op, part) for op, part in results) + _MULTI_END


@handles(requests.Op.MULTI_READ)
def multi_read(service: Service, client: Client, _op: requests.Op, request: requests.Multi) -> bytes:
    """Return each result or error in its place."""
    results = bytearray()
    for op, operation in request.operations:
        try:
            results += _MULTI.pack(op, False, 0) + _HANDLERS[op][1](service, client, op, operation)
        except KeeperError as refusal:
            results += _multi_error(refusal.code)
        if len(results) > MAX_MULTI_READ:
            raise KeeperError(ErrorCode.QUOTA_EXCEEDED, f"more than {MAX_MULTI_READ} bytes in one reply")
    return bytes(results) + _MULTI_END


@handles(requests.Op.GET_DATA)
def get_data(service: Service, client: Client, _op: requests.Op, request: requests.Read) -> bytes:
    node = _readable(service, client, request.path)
    if request.watch:
        service.watches.add(client, request.path, Mode.DATA)
    return buffer(node.data) + node.stat()


@handles(requests.Op.EXISTS)
def exists(service: Service, client: Client, _op: requests.Op, request: requests.Read) -> bytes:
    """Set the watch even if there is no node, unlike the other reads."""
    node = service.state.tree.nodes.get(request.path)
    if node is not None:
        access.require(node.acl, access.READ, client.requester.identities, request.path)
    if request.watch:
        service.watches.add(client, request.path, Mode.DATA)
    return _node(service, request.path).stat()


@handles(requests.Op.GET_CHILDREN, requests.Op.GET_CHILDREN2)
def get_children(service: Service, client: Client, op: requests.Op, request: requests.Read) -> bytes:
    node = _readable(service, client, request.path)
    if request.watch:
        service.watches.add(client, request.path, Mode.CHILD)
    names = vector(map(string, service.state.tree.children(request.path)))
    return names + node.stat() if op is requests.Op.GET_CHILDREN2 else names


@handles(requests.Op.GET_ACL)
def get_acl(service: Service, client: Client, _op: requests.Op, request: requests.Read) -> bytes:
    node = _readable(service, client, request.path, access.READ | access.ADMIN)
    may_change = access.allows(node.acl, access.ADMIN, client.requester.identities)
    return encode_acl(node.acl if may_change else masked(node.acl)) + node.stat()


@handles(requests.Op.SYNC)
def sync(_service: Service, _client: Client, _op: requests.Op, request: requests.Read) -> bytes:
    return string(request.path)  # a single node is always up to date


@handles(requests.Op.SET_WATCHES)
def set_watches(service: Service, client: Client, _op: requests.Op, request: requests.SetWatches) -> bytes:
    """Restore watches of an earlier connection: send missed events at once, set the others again."""
    for path, missed, mode in _rewatched(service, request):
        if missed is None:
            service.watches.add(client, path, mode)
        else:
            client.send(event_message(missed, path))
    return b""


@handles(requests.Op.AUTH)
def auth(service: Service, client: Client, _op: requests.Op, request: requests.Auth) -> bytes:
    """Add an identity to this connection; a failure closes it after the reply."""
    service.authentication.add_auth(client, request.scheme, request.credentials)
    service.authenticated(client)
    return b""


@handles(requests.Op.SASL)
def sasl(service: Service, client: Client, _op: requests.Op, request: requests.Sasl) -> bytes:
    """Answer a token of SASL DIGEST-MD5; a failure closes the connection after the reply."""
    answered = service.authentication.sasl(client, request.token)
    service.authenticated(client)
    return buffer(answered)


@handles(requests.Op.CLOSE)
def close(service: Service, client: Client, _op: requests.Op, _request: requests.Empty) -> bytes:
    service.close_session(client.requester.session_id)
    service.disconnected(client)
    return b""


@handles(requests.Op.PING)
def ping(_service: Service, _client: Client, _op: requests.Op, _request: requests.Empty) -> bytes:
    return b""


def _unknown(_service: Service, _client: Client, _op: requests.Op, _request: requests.Empty) -> bytes:
    raise KeeperError(ErrorCode.UNIMPLEMENTED)


_UNKNOWN: Final[tuple[requests.Op, Handler]] = (requests.Op.PING, _unknown)  # like a ping, it has no fields


def _node(service: Service, path: str) -> Znode:
    node = service.state.tree.nodes.get(path)
    if node is None:
        raise KeeperError(ErrorCode.BAD_ARGUMENTS if "\x00" in path else ErrorCode.NO_NODE, path)
    return node


def _readable(service: Service, client: Client, path: str, permission: int = access.READ) -> Znode:
    node = _node(service, path)
    access.require(node.acl, permission, client.requester.identities, path)
    return node


def _rewatched(
    service: Service, request: requests.SetWatches
) -> Iterable[tuple[str, EventType | None, Mode]]:
    nodes, seen = service.state.tree.nodes, request.relative_zxid
    for path in request.data:
        node = nodes.get(path)
        changed = EventType.DATA_CHANGED if node and node.mzxid > seen else None
        yield path, changed if node else EventType.DELETED, Mode.DATA
    for path in request.exist:
        yield path, EventType.CREATED if path in nodes else None, Mode.DATA
    for path in request.child:
        node = nodes.get(path)
        changed = EventType.CHILDREN_CHANGED if node and node.pzxid > seen else None
        yield path, changed if node else EventType.DELETED, Mode.CHILD


def _result(op: requests.Op, applied: Applied) -> bytes:
    if op in (requests.Op.DELETE, requests.Op.CHECK):
        return b""
    assert applied.node is not None, applied
    if op is requests.Op.CREATE:
        return string(applied.txn.path)
    stat = applied.node.stat()
    return string(applied.txn.path) + stat if op is requests.Op.CREATE2 else stat


def _multi_error(code: ErrorCode) -> bytes:
    return _MULTI.pack(_NO_OP, False, code) + INT.pack(code)
