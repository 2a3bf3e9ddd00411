"""What a transaction makes of the nodes it touches, as new nodes. Judges nothing: that was `decide`."""

from collections.abc import Callable

from headrace.coordination.embedded.node import Node, int32
from headrace.coordination.embedded.paths import parent_of
from headrace.coordination.embedded.txns import ChangeAcl, ChangeData, CreateNode, DeleteNode, NodeTxn

Changes = list[tuple[str, Node | None]]


def changes(txn: NodeTxn, node_at: Callable[[str], Node | None], zxid: int, time_ms: int) -> Changes:
    """The paths that change and their new nodes, None for one that goes; a parent before its child."""
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


def _with_data(node: Node, txn: ChangeData, zxid: int, time_ms: int) -> Node:
    # Spelled out because this is what most writes do, and `_replace` takes four times as long.
    return Node(
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


def _new(txn: CreateNode, zxid: int, time_ms: int) -> Node:
    return Node(txn.data, txn.acl, zxid, zxid, time_ms, time_ms, 0, 0, 0, txn.owner, zxid, 0)


def _there(node: Node | None, txn: NodeTxn) -> Node:
    assert node is not None, f"{txn} was granted for a node that is not there"
    return node
