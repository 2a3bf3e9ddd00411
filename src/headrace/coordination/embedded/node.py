"""Znodes, and the changes of a transaction. Nodes are immutable: a copied dictionary is a snapshot."""

from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple

from headrace.coordination.embedded.acl import AclList
from headrace.coordination.embedded.paths import parent_of
from headrace.coordination.embedded.txns import ChangeAcl, ChangeData, CreateNode, DeleteNode, NodeTxn

STAT: Final = Struct(">qqqqiiiqiiq")


class Znode(NamedTuple):
    """The content of a znode except its path; `cversion` counts the children ever created."""

    data: bytes | None
    acl: AclList
    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    owner: int  # the session of an ephemeral node, or 0
    pzxid: int
    num_children: int

    def stat(self) -> bytes:
        """Return the eleven fields that clients get.

        Their cversion also counts deletions. It is computed as in ZooKeeper: each creation and each deletion
        is one change, and the deletions are the creations minus the existing children.
        """
        return STAT.pack(
            self.czxid,
            self.mzxid,
            self.ctime,
            self.mtime,
            self.version,
            int32(2 * self.cversion - self.num_children),
            self.aversion,
            self.owner,
            len(self.data) if self.data else 0,
            self.num_children,
            self.pzxid,
        )


def int32(number: int) -> int:
    """Return `number` as a Java int: versions wrap around after two thousand million changes."""
    return (number + 0x80000000 & 0xFFFFFFFF) - 0x80000000


Changes = list[tuple[str, Znode | None]]


def changes(txn: NodeTxn, node_at: Callable[[str], Znode | None], zxid: int, time_ms: int) -> Changes:
    """Return the changed paths and their new nodes, None for a deleted one; a parent precedes its child."""
    match txn:
        case ChangeData():
            node = _there(node_at(txn.path), txn)
            return [(txn.path, _with_data(node, txn, zxid, time_ms))]
        case CreateNode():
            parent_path = parent_of(txn.path)
            parent = _there(node_at(parent_path), txn)
            grown = parent._replace(
                cversion=int32(parent.cversion + 1), num_children=parent.num_children + 1, pzxid=zxid
            )
            return [(parent_path, grown), (txn.path, _new(txn, zxid, time_ms))]
        case DeleteNode():
            parent_path = parent_of(txn.path)
            parent = _there(node_at(parent_path), txn)
            return [
                (parent_path, parent._replace(num_children=parent.num_children - 1, pzxid=zxid)),
                (txn.path, None),
            ]
        case ChangeAcl():
            node = _there(node_at(txn.path), txn)
            return [(txn.path, node._replace(acl=txn.acl, aversion=txn.version))]
    return []  # a check


def _with_data(node: Znode, txn: ChangeData, zxid: int, time_ms: int) -> Znode:
    # Without `_replace`, which is four times slower: this is the most frequent write.
    return Znode(
        txn.data,
        node.acl,
        node.czxid,
        zxid,
        node.ctime,
        time_ms,
        txn.version,
        node.cversion,
        node.aversion,
        node.owner,
        node.pzxid,
        node.num_children,
    )


def _new(txn: CreateNode, zxid: int, time_ms: int) -> Znode:
    return Znode(txn.data, txn.acl, zxid, zxid, time_ms, time_ms, 0, 0, 0, txn.owner, zxid, 0)


def _there(node: Znode | None, txn: NodeTxn) -> Znode:
    assert node is not None, f"{txn} needs a node that does not exist"
    return node
