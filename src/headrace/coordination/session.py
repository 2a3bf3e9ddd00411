"""A broker's session with ZooKeeper, for asyncio.

kazoo has its own threads. Whatever happens there is passed to the event loop: results resolve futures, and
watches and session changes call functions of the owner, always on the loop. A watch fires once, and does not
survive a reconnection: it then fires too, and the owner reads again.

The session lives as long as the event loop makes progress, not as long as kazoo's thread does: a broker whose
loop is stuck serves no client and must lose its session, so that others can replace it (`loop_progress.py`).
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    SessionExpiredError,
)

from headrace.coordination.client_security import (
    OPEN,
    ClientSecurity,
    CredentialRefused,
    kazoo_logger,
    secure,
)
from headrace.coordination.errors import CoordinationError
from headrace.coordination.loop_progress import LoopProgress, happens_within, ping_only_with_progress
from headrace.coordination.multi_read import MultiRead
from headrace.coordination.znode_acls import acl_of
from headrace.system.background import BackgroundThread

ANY_VERSION = -1
CALL_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 1.0
RECONNECTED_MS = 5000  # how long a requested change waits for a connection
MAX_RECONNECT_DELAY_S = 2  # kazoo's default is a minute, during which a broker would stay unregistered
_RECONNECT_POLL_S = 0.02
_READ_TOGETHER = 200  # znodes of one request
MAX_CALLS = 256  # concurrent ones; a call's timeout begins when it is sent

logger = logging.getLogger(__name__)


class NotConnected(CoordinationError):
    """There is no connection to ZooKeeper; whether the last write was applied is unknown."""


class Conflict(CoordinationError):
    """Another client was first: the znode at `path` exists, is gone, or has another version."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


class SessionState(Enum):
    """The names are those of KazooState."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"  # no connection: the state of other brokers is unknown
    LOST = "lost"  # the session has ended, and its ephemeral znodes are gone


class Znode(NamedTuple):
    data: bytes
    version: int
    created_zxid: int
    ephemeral_owner: int = 0  # the session that it is removed with; 0: persistent
    modified_zxid: int = 0
    created_ms: int = 0  # by the clock of the server
    children: int = 0


class Create(NamedTuple):
    path: str
    data: bytes
    ephemeral: bool = False


class Set(NamedTuple):
    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    path: str
    version: int


Operation = Create | Set | Delete | Check
Watcher = Callable[[], None]


class ZooKeeperSession:
    """One session; created by `connect`, used from the event loop that created it."""

    def __init__(
        self,
        client: KazooClient,
        loop: asyncio.AbstractEventLoop,
        progress: LoopProgress,
        *,
        call_timeout_s: float = CALL_TIMEOUT_S,
        set_acl: bool = False,
    ) -> None:
        self._set_acl = set_acl
        self._client = client
        self._loop = loop
        self._progress = progress
        self._call_timeout_s = call_timeout_s
        self._calls = asyncio.Semaphore(MAX_CALLS)
        self._on_state: Callable[[SessionState], None] = lambda _state: None
        client.add_listener(lambda state: self._to_loop(lambda: self._on_state(SessionState[state])))

    @classmethod
    async def connect(
        cls,
        servers: str,
        *,
        session_timeout_ms: int,
        connect_timeout_ms: int,
        call_timeout_s: float = CALL_TIMEOUT_S,
        security: ClientSecurity = OPEN,
    ) -> "ZooKeeperSession":
        """Open a session with the ensemble `servers` ("host:port,host:port/chroot").

        Raise NotConnected if it does not respond, and CredentialRefused if it does not accept our credential.
        A call without a response within `call_timeout_s` raises NotConnected.
        """
        context = await asyncio.to_thread(security.context)
        client = KazooClient(
            hosts=servers,
            timeout=session_timeout_ms / 1000,
            connection_retry={"max_tries": -1, "max_delay": MAX_RECONNECT_DELAY_S},
            logger=kazoo_logger,
        )
        progress = LoopProgress(session_timeout_ms / 1000)
        ping_only_with_progress(client, progress)
        session = cls(
            client,
            asyncio.get_running_loop(),
            progress,
            call_timeout_s=call_timeout_s,
            set_acl=security.set_acl,
        )
        # kazoo's state is CONNECTED before it has authenticated, so that state is not waited for.
        attempted = asyncio.Event()
        outcome = secure(client, security, context, lambda: session._to_loop(attempted.set))
        await asyncio.to_thread(client.start_async)
        connected = False
        try:
            if await happens_within(attempted, connect_timeout_ms / 1000):
                outcome.check(servers)
                connected = True
        finally:
            if not connected:
                progress.stop()
                BackgroundThread(_abandon, args=(client,), name="zookeeper-abandoned", stop=None).start()
        if not connected:
            raise NotConnected(
                f"no ZooKeeper responds at {servers} within {connect_timeout_ms} ms: is it running, and is "
                f"zookeeper.connect right?{f' ({outcome.failure})' if outcome.failure else ''}"
            )
        return session

    def on_state(self, callback: Callable[[SessionState], None]) -> None:
        """Call `callback`, on the loop, whenever the session's state changes."""
        self._on_state = callback

    @property
    def session_id(self) -> int:
        return int(self._client.client_id[0]) if self._client.client_id else 0

    @property
    def timeout_s(self) -> float:
        """Return the session timeout that ZooKeeper has granted, which may be less than the requested one."""
        return self._progress.session_timeout_s

    async def reconnected(self, within_ms: int = RECONNECTED_MS) -> None:
        """Wait a short time for a connection if there is none; the next call raises if there still is none.

        A call does not wait by itself: most callers need to know at once that ZooKeeper is out of reach.
        """
        deadline = self._loop.time() + min(within_ms, RECONNECTED_MS) / 1000
        while not self._client.connected and self._loop.time() < deadline:  # noqa: ASYNC110  kazoo's thread
            await asyncio.sleep(_RECONNECT_POLL_S)

    async def close(self) -> None:
        """End the session, which removes its ephemeral znodes; no further state change is reported.

        If ZooKeeper does not respond, the session expires later: this returns within about a second.
        """
        self.on_state(lambda _state: None)
        self._progress.stop()
        closed = asyncio.Event()

        def close() -> None:
            _abandon(self._client)
            self._to_loop(closed.set)

        # Not a thread of the executor: the end of the process would wait for it.
        BackgroundThread(close, name="zookeeper-closing", stop=None).start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await closed.wait()

    async def get(self, path: str, watch: Watcher | None = None) -> Znode | None:
        """Return the znode at `path`, or None; `watch` is called once when that changes."""
        try:
            data, stat = await self._call(self._client.get_async, path, watch=self._watcher(watch))
        except NoNodeError:
            if watch is not None and await self.exists(path, watch):
                return await self.get(path, watch)  # it was created between the two calls
            return None
        return _znode(data, stat)

    async def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        """Return the znodes at `paths`, in few requests; None for those that do not exist."""
        parts = [paths[first : first + _READ_TOGETHER] for first in range(0, len(paths), _READ_TOGETHER)]
        znodes = await asyncio.gather(*map(self._get_part, parts))
        return [znode for part in znodes for znode in part]

    async def _get_part(self, paths: Sequence[str]) -> list[Znode | None]:
        try:
            results = await self._call(self._multi_read, paths)
        except KazooException:  # the server is older than 3.6, or the response would be too large
            return await asyncio.gather(*map(self.get, paths))
        for path, result in zip(paths, results, strict=True):
            if isinstance(result, NoAuthError):
                raise _refused(path)
            if isinstance(result, KazooException) and not isinstance(result, NoNodeError):
                raise result
        return [None if isinstance(result, NoNodeError) else _znode(*result) for result in results]

    def _multi_read(self, paths: Sequence[str]) -> Any:
        result = self._client.handler.async_result()
        request = MultiRead([self._client.chroot + path for path in paths])
        self._client._call(request, result)  # noqa: SLF001  kazoo has no other way to send a new kind of request
        return result

    async def exists(self, path: str, watch: Watcher | None = None) -> bool:
        return await self._call(self._client.exists_async, path, watch=self._watcher(watch)) is not None

    async def sync(self) -> None:
        """Return when the server of this session has applied all earlier writes of the ensemble.

        A server that is cut off from the others still responds to reads for a while, but not to this call.
        """
        await self._call(self._client.sync_async, "/")

    async def children(self, path: str, watch: Watcher | None = None) -> list[str]:
        """Return the names below `path`, unordered; none if it does not exist."""
        try:
            return list(await self._call(self._client.get_children_async, path, watch=self._watcher(watch)))
        except NoNodeError:
            return []

    async def create(self, path: str, data: bytes, *, ephemeral: bool = False, sequence: bool = False) -> str:
        """Create a znode and return its path; raise Conflict if it exists or its parent does not."""
        acl = acl_of(path, set_acl=self._set_acl)
        call = self._call(
            self._client.create_async, path, data, acl=acl, ephemeral=ephemeral, sequence=sequence
        )
        return str(await _conflicts(call, path))

    async def ensure(self, path: str) -> None:
        """Create a persistent znode and its ancestors if they are missing."""
        names = path.strip("/").split("/")
        for count in range(1 if self._set_acl else len(names), len(names) + 1):  # each with its own ACL
            each = "/" + "/".join(names[:count])
            await self._call(self._client.ensure_path_async, each, acl=acl_of(each, set_acl=self._set_acl))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Replace a znode's content and return its new version; raise Conflict if it is not at `version`."""
        stat = await _conflicts(self._call(self._client.set_async, path, data, version=version), path)
        return int(stat.version)

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Remove a znode; raise Conflict if it is not at `version`, or has children."""
        await _conflicts(self._call(self._client.delete_async, path, version=version), path)

    async def reset_acl(self, path: str, *, protect: bool) -> bool:
        """Give a znode the ACL of a new one, as with or without zookeeper.set.acl; False if it is gone."""
        try:
            await self._call(self._client.set_acls_async, path, acl_of(path, set_acl=protect))
        except NoNodeError:
            return False
        return True

    async def delete_tree(self, path: str) -> None:
        """Remove a znode and everything below it, if it exists."""
        for child in await self.children(path):
            await self.delete_tree(f"{path}/{child}")
        try:
            await self._call(self._client.delete_async, path)
        except NoNodeError:
            return

    async def multi(self, operations: Sequence[Operation]) -> None:
        """Apply all of `operations` or none; Conflict names the first that failed."""
        transaction = self._client.transaction()
        for operation in operations:
            match operation:
                case Create(path, data, ephemeral):
                    transaction.create(
                        path, data, acl=acl_of(path, set_acl=self._set_acl), ephemeral=ephemeral
                    )
                case Set(path, data, version):
                    transaction.set_data(path, data, version)
                case Delete(path, version):
                    transaction.delete(path, version)
                case Check(path, version):
                    transaction.check(path, version)
        results = await self._call(transaction.commit_async)
        for operation, result in zip(operations, results, strict=True):
            if isinstance(result, KazooException) and not isinstance(
                result, RolledBackError | RuntimeInconsistency
            ):
                if isinstance(result, NoAuthError):
                    raise _refused(operation.path)
                raise Conflict(f"{type(result).__name__} at {operation.path}", operation.path)

    async def _call(self, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Return kazoo's result; raise NotConnected at once without a connection, or after the timeout."""
        async with self._calls:
            # Without a connection kazoo would queue the call, and the caller would hang.
            if not self._client.connected:
                raise NotConnected("ZooKeeper is out of reach: there is no connection")
            try:
                future: asyncio.Future[Any] = self._loop.create_future()

                def settle(result: Any) -> None:
                    if future.done():
                        return
                    if result.exception is None:
                        future.set_result(result.value)
                    else:
                        future.set_exception(result.exception)

                async with asyncio.timeout(self._call_timeout_s):
                    method(*args, **options).rawlink(lambda result: self._to_loop(settle, result))
                    return await future
            except TimeoutError:
                raise NotConnected(f"ZooKeeper has not responded within {self._call_timeout_s:g} s") from None
            except (AuthFailedError, ConnectionLoss, ConnectionClosedError, SessionExpiredError) as error:
                raise NotConnected(f"ZooKeeper is out of reach: {type(error).__name__}") from error
            except NoAuthError as error:
                raise _refused(str(args[0])) from error

    def _watcher(self, watch: Watcher | None) -> Callable[[Any], None] | None:
        return None if watch is None else lambda _event: self._to_loop(watch)

    def _to_loop(self, function: Callable[..., None], *args: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, *args)


def _abandon(client: KazooClient) -> None:
    """Close a connection, which may take kazoo long if the server does not respond."""
    with contextlib.suppress(KazooException, OSError):
        client.stop()
        client.close()


def _znode(data: bytes, stat: Any) -> Znode:
    return Znode(
        data, stat.version, stat.czxid, stat.ephemeralOwner, stat.mzxid, stat.ctime, stat.numChildren
    )


def _refused(path: str) -> CredentialRefused:
    return CredentialRefused(f"ZooKeeper refuses access to {path} (NOAUTH): its ACL does not name our user")


async def _conflicts(call: Awaitable[Any], path: str) -> Any:
    try:
        return await call
    except (NodeExistsError, NoNodeError, BadVersionError, NotEmptyError) as error:
        raise Conflict(f"{type(error).__name__} at {path}", path) from error
