"""The data tree: it applies transactions and returns new nodes and events. No clock, no file, no socket."""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from headrace.coordination.embedded.acl import OPEN, READ_ONLY, AclList
from headrace.coordination.embedded.node import Znode, changes
from headrace.coordination.embedded.paths import ROOT, parent_of
from headrace.coordination.embedded.txns import ChangeData, CreateNode, DeleteNode, NodeTxn


class EventType(IntEnum):
    """ZooKeeper's Watcher.Event.EventType."""

    CREATED = 1
    DELETED = 2
    DATA_CHANGED = 3
    CHILDREN_CHANGED = 4


class Event(NamedTuple):
    """An event for watchers of `path` that `acl` allows to read it."""

    type: EventType
    path: str
    acl: AclList


class Applied(NamedTuple):
    """The result of a transaction: the node at its path, for the reply, and the events."""

    txn: NodeTxn
    node: Znode | None
    events: tuple[Event, ...]


class Tree:
    """Every node by path, the children of each, and the ephemeral nodes of each session."""

    def __init__(self) -> None:
        self.nodes: dict[str, Znode] = {}
        self._children: dict[str, dict[str, None]] = {}  # used as ordered sets
        self._ephemerals: dict[int, dict[str, None]] = {}
        for path, acl, children in (
            (ROOT, OPEN, 1),
            ("/zookeeper", OPEN, 2),
            ("/zookeeper/quota", OPEN, 0),
            ("/zookeeper/config", READ_ONLY, 0),
        ):
            self.nodes[path] = Znode(b"", acl, 0, 0, 0, 0, 0, 0, 0, 0, 0, children)
        self._index(self.nodes)
        self.data_bytes = _size_of(self.nodes)  # of all paths and data

    @classmethod
    def of(cls, nodes: dict[str, Znode]) -> "Tree":
        """Return the tree with exactly these nodes, from a snapshot."""
        tree = cls()
        tree._children.clear()
        tree.nodes = nodes
        tree._index(nodes)
        tree.data_bytes = _size_of(nodes)
        return tree

    def apply(self, txn: NodeTxn, zxid: int, time_ms: int) -> Applied:
        """Apply a transaction; a replay calls only this."""
        before = self.nodes.get(txn.path)
        changed = changes(txn, self.nodes.get, zxid, time_ms)
        for path, node in changed:
            if node is None:
                del self.nodes[path]
            else:
                self.nodes[path] = node
        if type(txn) is CreateNode:
            self._link(txn.path, txn.owner)
        elif type(txn) is DeleteNode:
            assert before is not None, txn
            parent = parent_of(txn.path)
            siblings = self._children[parent]
            del siblings[txn.path[txn.path.rindex("/") + 1 :]]
            if not siblings:
                del self._children[parent]
            if before.owner:
                owned = self._ephemerals[before.owner]
                del owned[txn.path]
                if not owned:
                    del self._ephemerals[before.owner]
        after = self.nodes.get(txn.path)
        self.data_bytes += _size(txn.path, after) - _size(txn.path, before)
        return Applied(txn, after, self._events(txn, before))

    def children(self, path: str) -> Iterable[str]:
        """Return the names below `path`, oldest first."""
        return self._children.get(path, ())

    def ephemerals(self, session_id: int) -> tuple[str, ...]:
        """Return the ephemeral nodes of a session, oldest first."""
        return tuple(self._ephemerals.get(session_id, ()))

    def ephemeral_count(self) -> int:
        return sum(map(len, self._ephemerals.values()))

    def _index(self, nodes: Iterable[str]) -> None:
        for path in nodes:
            if path != ROOT:
                self._link(path, self.nodes[path].owner)

    def _link(self, path: str, owner: int) -> None:
        parent = parent_of(path)
        self._children.setdefault(parent, {})[path[path.rindex("/") + 1 :]] = None
        if owner:
            self._ephemerals.setdefault(owner, {})[path] = None

    def _events(self, txn: NodeTxn, before: Znode | None) -> tuple[Event, ...]:
        path = txn.path
        match txn:
            case ChangeData():
                return (Event(EventType.DATA_CHANGED, path, self.nodes[path].acl),)
            case CreateNode():
                own = Event(EventType.CREATED, path, txn.acl)
            case DeleteNode():
                assert before is not None, txn
                own = Event(EventType.DELETED, path, before.acl)
            case _:
                return ()
        parent = parent_of(path)
        return own, Event(EventType.CHILDREN_CHANGED, parent, self.nodes[parent].acl)


def _size(path: str, node: Znode | None) -> int:
    return 0 if node is None else len(path) + len(node.data or b"")


def _size_of(nodes: dict[str, Znode]) -> int:
    return sum(_size(path, node) for path, node in nodes.items())
