"""The state that log and snapshots store: the tree, the sessions, the last zxid. Pure.

`decide` validates requests and changes nothing; `apply` changes the state, and is all that a replay calls.
"""

from typing import NamedTuple

from headrace.coordination.embedded.node import Node
from headrace.coordination.embedded.sessions import Sessions
from headrace.coordination.embedded.tree import Applied, Tree
from headrace.coordination.embedded.txns import CloseSession, DeleteNode, Entry, OpenSession, Several


class Image(NamedTuple):
    """A copy of the state, which another thread writes while the state changes."""

    zxid: int
    last_session_id: int
    sessions: list[tuple[int, int, bytes]]  # id, timeout, password
    nodes: dict[str, Node]


class State:
    def __init__(self, tick_ms: int, image: Image | None = None) -> None:
        self.sessions = Sessions(tick_ms)
        self.tree = Tree()
        self.zxid = 0
        if image is not None:
            self.zxid = image.zxid
            self.tree = Tree.of(image.nodes)
            for session in image.sessions:
                self.sessions.open(*session)
            self.sessions.last_id = image.last_session_id

    def apply(self, entry: Entry) -> list[Applied]:
        """Apply an entry and return the result of each of its parts, in order."""
        assert entry.zxid == self.zxid + 1, f"zxid {entry.zxid} after {self.zxid}"
        zxid, time_ms, txn = entry
        self.zxid = zxid
        match txn:
            case Several():
                return [self.tree.apply(part, zxid, time_ms) for part in txn.txns]
            case OpenSession():
                self.sessions.open(*txn)
                return []
            case CloseSession():
                self.sessions.close(txn.session_id)
                return [self.tree.apply(DeleteNode(path), zxid, time_ms) for path in txn.paths]
        return [self.tree.apply(txn, zxid, time_ms)]

    def image(self) -> Image:
        """Return an independent copy: nodes are immutable, so copying the dictionary is enough."""
        sessions = [(each.session_id, each.timeout_ms, each.password) for each in self.sessions.all()]
        return Image(self.zxid, self.sessions.last_id, sessions, dict(self.tree.nodes))
