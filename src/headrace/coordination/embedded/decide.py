"""Validation of write requests: each becomes a transaction or is refused. Reads the nodes, changes nothing.

The order of the checks is ZooKeeper's, so that a request with two errors gets the same error code.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from headrace.coordination.embedded import acl as access
from headrace.coordination.embedded.acl import Identity
from headrace.coordination.embedded.errors import ErrorCode, KeeperError
from headrace.coordination.embedded.node import Znode, changes, int32
from headrace.coordination.embedded.paths import SPECIAL, check_parent, check_path
from headrace.coordination.embedded.requests import Check, Create, Delete, Multi, SetAcl, SetData, Write
from headrace.coordination.embedded.txns import (
    ChangeAcl,
    ChangeData,
    Checked,
    CreateNode,
    DeleteNode,
    NodeTxn,
    Several,
)

ANY_VERSION: Final = -1


class Requester(NamedTuple):
    session_id: int
    identities: tuple[Identity, ...]


class Nodes(Protocol):
    """The tree, or a draft of it."""

    def get(self, path: str, /) -> Znode | None: ...


class MultiFailed(Exception):
    """One operation of a multi failed, and so all of them."""

    def __init__(self, position: int, count: int, refusal: KeeperError) -> None:
        super().__init__(f"operation {position + 1} of {count}: {refusal}")
        self.position, self.count, self.code = position, count, refusal.code

    def codes(self) -> Iterator[ErrorCode]:
        """Yield the code of each operation: OK before the failed one, RUNTIME_INCONSISTENCY after it."""
        yield from [ErrorCode.OK] * self.position
        yield self.code
        yield from [ErrorCode.RUNTIME_INCONSISTENCY] * (self.count - self.position - 1)


def decide_multi(request: Multi, nodes: Nodes, requester: Requester) -> Several:
    """Return one transaction for all operations, each of which sees the effects of those before it.

    Raises MultiFailed.
    """
    draft = Draft(nodes)
    txns: list[NodeTxn] = []
    for position, (_op, operation) in enumerate(request.operations):
        assert isinstance(operation, Write), operation  # the decoder accepts nothing else
        try:
            txn = decide(operation, draft, requester)
        except KeeperError as refusal:
            raise MultiFailed(position, len(request.operations), refusal) from None
        draft.apply(txn)
        txns.append(txn)
    return Several(tuple(txns))


class Draft:
    """The nodes after some transactions; the nodes underneath are not changed."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._changed: dict[str, Znode | None] = {}

    def get(self, path: str, /) -> Znode | None:
        return self._changed[path] if path in self._changed else self._nodes.get(path)

    def apply(self, txn: NodeTxn) -> None:
        # No decision depends on a zxid or a time, so the draft's need not be the real ones.
        self._changed.update(changes(txn, self.get, 0, 0))


def _create(request: Create, nodes: Nodes, requester: Requester) -> CreateNode:
    path, flags = request.path, request.flags
    if flags in (4, 5, 6):
        raise KeeperError(ErrorCode.UNIMPLEMENTED, "containers, and nodes with a time to live")
    if not 0 <= flags <= 3:
        raise KeeperError(ErrorCode.BAD_ARGUMENTS, f"create flags {flags}")
    parent_path = check_parent(path)
    acl = access.expand(request.acl, requester.identities, path)
    parent = _existing(parent_path, nodes)
    access.require(parent.acl, access.CREATE, requester.identities, path)
    if flags & 2:
        path = f"{path}{parent.cversion:010d}"
    check_path(path)
    if nodes.get(path) is not None:
        raise KeeperError(ErrorCode.NODE_EXISTS, path)
    if parent.owner > 0:
        raise KeeperError(ErrorCode.NO_CHILDREN_FOR_EPHEMERALS, path)
    return CreateNode(path, request.data, acl, owner=requester.session_id if flags & 1 else 0)


def _delete(request: Delete, nodes: Nodes, requester: Requester) -> DeleteNode:
    path = request.path
    if path in SPECIAL:
        raise KeeperError(ErrorCode.BAD_ARGUMENTS, f"{path} cannot be deleted")
    parent = _existing(check_parent(path), nodes)
    access.require(parent.acl, access.DELETE, requester.identities, path)
    node = _existing(path, nodes)
    _require_version(node.version, request.version, path)
    if node.num_children:
        raise KeeperError(ErrorCode.NOT_EMPTY, path)
    return DeleteNode(path)


def _set_data(request: SetData, nodes: Nodes, requester: Requester) -> ChangeData:
    path = request.path
    node = nodes.get(path)
    if node is None:
        check_path(path)  # the path of an existing node is valid
        raise KeeperError(ErrorCode.NO_NODE, path)
    access.require(node.acl, access.WRITE, requester.identities, path)
    _require_version(node.version, request.version, path)
    return ChangeData(path, request.data, int32(node.version + 1))


def _set_acl(request: SetAcl, nodes: Nodes, requester: Requester) -> ChangeAcl:
    path = request.path
    check_path(path)
    acl = access.expand(request.acl, requester.identities, path)
    node = _existing(path, nodes)
    access.require(node.acl, access.ADMIN, requester.identities, path)
    _require_version(node.aversion, request.version, path)
    return ChangeAcl(path, acl, int32(node.aversion + 1))


def _check(request: Check, nodes: Nodes, requester: Requester) -> Checked:
    check_path(request.path)
    node = _existing(request.path, nodes)
    access.require(node.acl, access.READ, requester.identities, request.path)
    _require_version(node.version, request.version, request.path)
    return Checked(request.path)


_DECISIONS: Final[Mapping[type[Write], Callable[[Any, Nodes, Requester], NodeTxn]]] = {
    SetData: _set_data,
    Create: _create,
    Delete: _delete,
    Check: _check,
    SetAcl: _set_acl,
}


def decide(request: Write, nodes: Nodes, requester: Requester) -> NodeTxn:
    """Return the transaction for `request`; raise KeeperError if it is refused."""
    return _DECISIONS[type(request)](request, nodes, requester)


def _existing(path: str, nodes: Nodes) -> Znode:
    node = nodes.get(path)
    if node is None:
        raise KeeperError(ErrorCode.NO_NODE, path)
    return node


def _require_version(current: int, expected: int, path: str) -> None:
    if expected not in (ANY_VERSION, current):
        raise KeeperError(ErrorCode.BAD_VERSION, f"{path} is at {current}, not {expected}")
