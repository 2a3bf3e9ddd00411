"""The coordinator without sockets and files: the state, the watches, the connected clients.

Messages to a client go through its `send`, in order: first the events that a change causes, then the
reply that could reveal the change. `commit` decides when they may be sent.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final, Protocol

from headrace.coordination.embedded import acl as access
from headrace.coordination.embedded.authentication import Authentication
from headrace.coordination.embedded.decide import Requester
from headrace.coordination.embedded.jute import buffer, frame, string
from headrace.coordination.embedded.requests import Connect
from headrace.coordination.embedded.state import MAX_SESSIONS, CoordinatorState
from headrace.coordination.embedded.tree import Applied, EventType
from headrace.coordination.embedded.txns import CloseSession, Entry, OpenSession, Txn
from headrace.coordination.embedded.watches import Watches
from headrace.security.sasl.digest_md5 import DigestMd5Server

PASSWORD_BYTES: Final = 16
EVENT_XID: Final = -1
UNKNOWN_ZXID: Final = -1  # of an event from before the client's connection
SYNC_CONNECTED: Final = 3  # the state that every event reports
REPLY: Final = Struct(">iqi")  # xid, zxid, error
_EVENT: Final = Struct(">ii")  # type, state
_CONNECTED: Final = Struct(">iiq")  # protocol version, timeout, session id
_NO_SESSION: Final = OpenSession(0, 0, bytes(PASSWORD_BYTES))


class Client(Protocol):
    """The request side of a connection."""

    address: str
    requester: Requester
    is_authenticated: bool
    sasl: DigestMd5Server | None
    unopened: OpenSession | None  # the session that is opened once the client has authenticated

    def send(self, message: bytes) -> None: ...

    def close(self) -> None:
        """Close the connection after everything that was sent before."""


class Service:
    """Handles sessions and transactions. Storage, clocks, randomness and the bug handler are passed in."""

    def __init__(
        self,
        state: CoordinatorState,
        *,
        write: Callable[[Entry], None],
        wall_ms: Callable[[], int],
        monotonic_ms: Callable[[], float],
        random_bytes: Callable[[int], bytes],
        broken: Callable[[BaseException], None],
        authentication: Authentication | None = None,
    ) -> None:
        self.state = state
        self.authentication = authentication or Authentication()
        self.watches: Watches[Client] = Watches()
        self.clients: dict[int, Client] = {}  # by session
        self._write = write
        self._wall_ms = wall_ms
        self._monotonic_ms = monotonic_ms
        self._random_bytes = random_bytes
        self._broken = broken

    def submit(self, txn: Txn) -> list[Applied]:
        """Log a transaction, apply it to the state, and notify watchers."""
        entry = Entry(self.state.zxid + 1, self._wall_ms(), txn)
        try:
            self._write(entry)
            applied = self.state.apply(entry)
            for event in (event for part in applied for event in part.events):
                watchers = self.watches.trigger(event)
                message = event_message(event.type, event.path, self.state.zxid) if watchers else b""
                for watcher in watchers:
                    # A client may have set the watch before the node existed, and may not read it.
                    if access.allows(event.acl, access.READ, watcher.requester.identities):
                        watcher.send(message)
        except Exception as bug:
            self._broken(bug)  # log and state may differ now: the server must stop
            raise
        return applied

    def connect(self, client: Client, request: Connect) -> None:
        """Open a session for `client`, or reattach its earlier one."""
        if request.last_zxid > self.state.zxid:
            client.close()  # it has seen a newer state: it belongs to another server
        elif request.session_id:
            self._attach(client, request)
        elif len(self.state.sessions) >= MAX_SESSIONS:
            client.close()
        else:
            sessions = self.state.sessions
            opened = OpenSession(
                sessions.fresh_id(self._wall_ms()),
                sessions.negotiate(request.timeout_ms),
                self._random_bytes(PASSWORD_BYTES),
            )
            if self.authentication.admits(client):
                self._store(opened)
            else:
                client.unopened = opened  # a stranger causes no write
            self._welcome(client, request, opened)

    def heard_of(self, client: Client) -> None:
        self.state.sessions.touch(client.requester.session_id, self._monotonic_ms())

    def disconnected(self, client: Client) -> None:
        """Remove a connection; its session continues until it expires or the client reconnects."""
        self.watches.forget(client)
        if self.clients.get(client.requester.session_id) is client:
            del self.clients[client.requester.session_id]

    def close_session(self, session_id: int) -> None:
        """End a session and delete its ephemeral nodes."""
        if session_id in self.state.sessions:
            self.submit(CloseSession(session_id, self.state.tree.ephemerals(session_id)))

    def expire(self) -> list[int]:
        expired = self.state.sessions.expired(self._monotonic_ms())
        for session_id in expired:
            self.close_session(session_id)
            client = self.clients.get(session_id)
            if client is not None:
                self.disconnected(client)
                client.close()
        return expired

    def authenticated(self, client: Client) -> None:
        """Open the session that has waited until its client authenticates."""
        if client.unopened is not None and self.authentication.admits(client):
            self._store(client.unopened)
            client.unopened = None

    def _store(self, session: OpenSession) -> None:
        self.submit(session)
        self.state.sessions.touch(session.session_id, self._monotonic_ms())

    def _attach(self, client: Client, request: Connect) -> None:
        session = self.state.sessions.attach(
            request.session_id, request.password, request.timeout_ms, self._monotonic_ms()
        )
        if session is None:
            _introduce(client, request, _NO_SESSION)
            client.close()
            return
        earlier = self.clients.get(session.session_id)
        if earlier is not None:
            self.disconnected(earlier)
            earlier.close()
        self._welcome(client, request, OpenSession(session.session_id, session.timeout_ms, session.password))

    def _welcome(self, client: Client, request: Connect, session: OpenSession) -> None:
        client.requester = client.requester._replace(session_id=session.session_id)
        self.clients[session.session_id] = client
        _introduce(client, request, session)


def event_message(event: EventType, path: str, zxid: int = UNKNOWN_ZXID) -> bytes:
    return frame(REPLY.pack(EVENT_XID, zxid, 0), _EVENT.pack(event, SYNC_CONNECTED), string(path))


def _introduce(client: Client, request: Connect, session: OpenSession) -> None:
    """Send the client its session; a timeout of 0 means that the session has ended."""
    read_only = b"\x00" if request.knows_read_only else b""
    connected = _CONNECTED.pack(0, session.timeout_ms, session.session_id)
    client.send(frame(connected, buffer(session.password), read_only))
