"""The state that log and snapshots store: the tree, the sessions, the last zxid. Pure.

`decide` validates requests and changes nothing; `apply` changes the state, and is all that a replay calls.
"""

import hmac
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from headrace.coordination.embedded.node import Znode
from headrace.coordination.embedded.tree import Applied, Tree
from headrace.coordination.embedded.txns import CloseSession, DeleteNode, Entry, OpenSession, Several

MAX_SESSIONS: Final = 20_000
"""Beyond this many, new sessions are refused; each needs memory and a transaction in the log."""


@dataclass(slots=True)
class Session:
    session_id: int
    timeout_ms: int
    password: bytes = field(repr=False)
    deadline_ms: float = inf  # set by the first touch, after a replay of the log


class Sessions:
    """Sessions and their timeouts. Time is passed in, in milliseconds of a monotonic clock.

    A session outlives its connection: a client that reconnects in time with the right password continues it.
    Timeouts are between 2 and 20 ticks, as in ZooKeeper.
    """

    def __init__(self, tick_ms: int) -> None:
        self.tick_ms = tick_ms
        self._sessions: dict[int, Session] = {}
        self.last_id = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, session_id: int) -> bool:
        return session_id in self._sessions

    def all(self) -> list[Session]:
        return list(self._sessions.values())

    def negotiate(self, timeout_ms: int) -> int:
        """Return the timeout of a session for which a client requests `timeout_ms`."""
        return max(2 * self.tick_ms, min(timeout_ms, 20 * self.tick_ms))

    def fresh_id(self, time_ms: int) -> int:
        """Return an unused id, even if the wall clock went back or the log is from another machine."""
        self.last_id = max(self.last_id + 1, (time_ms << 16) & 0x7FFF_FFFF_FFFF_FFFF)
        return self.last_id

    def open(self, session_id: int, timeout_ms: int, password: bytes) -> None:
        self._sessions[session_id] = Session(session_id, timeout_ms, password)
        self.last_id = max(self.last_id, session_id)

    def close(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def attach(self, session_id: int, password: bytes, timeout_ms: int, now_ms: float) -> Session | None:
        """Return the session, with its new timeout; None if it has ended or the password is wrong."""
        session = self._sessions.get(session_id)
        if session is None or not hmac.compare_digest(session.password, password):
            return None
        session.timeout_ms = self.negotiate(timeout_ms)
        session.deadline_ms = now_ms + session.timeout_ms
        return session

    def touch(self, session_id: int, now_ms: float) -> None:
        """Renew the session: its client has sent something."""
        session = self._sessions.get(session_id)
        if session is not None:
            session.deadline_ms = now_ms + session.timeout_ms

    def restart_clocks(self, now_ms: float) -> None:
        """Give every session a whole timeout from now: after a start, or after this process was stopped."""
        for session in self._sessions.values():
            session.deadline_ms = now_ms + session.timeout_ms

    def expired(self, now_ms: float) -> list[int]:
        return [session.session_id for session in self._sessions.values() if session.deadline_ms <= now_ms]


class Image(NamedTuple):
    """A copy of the state, which another thread writes while the state changes."""

    zxid: int
    last_session_id: int
    sessions: list[tuple[int, int, bytes]]  # id, timeout, password
    nodes: dict[str, Znode]


class CoordinatorState:
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
