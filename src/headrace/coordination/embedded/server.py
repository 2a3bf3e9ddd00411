"""The embedded coordinator: a ZooKeeper server of one node, for one machine.

async with Coordinator(Path("coordinator"), port=0) as coordinator:
    KazooClient(coordinator.address)
"""

import asyncio
import logging
import secrets
import time
from pathlib import Path
from typing import Final, Self

from headrace.coordination.embedded.authentication import Authentication
from headrace.coordination.embedded.commit import GroupCommit
from headrace.coordination.embedded.connection import ZooKeeperConnection
from headrace.coordination.embedded.four_letter_words import SRVR, WORDS
from headrace.coordination.embedded.journal import Journal
from headrace.coordination.embedded.service import Service
from headrace.coordination.errors import CoordinationError
from headrace.security.pem import InvalidTlsSetting
from headrace.security.tls import ReloadingContext, TlsSettings
from headrace.system.acceptor import Acceptor, PlainServer, bind_all
from headrace.system.addresses import is_loopback
from headrace.system.tls_server import TlsServer

PORT: Final = 2181
TICK_MS: Final = 2000
MAX_CONNECTIONS: Final = 1000
HANDSHAKE_S: Final = 10  # until a client has opened a session, and has authenticated if it must
MAX_UNAUTHENTICATED: Final = 200  # connections that have not authenticated, if they must
TLS_REFRESH_TICKS: Final = 3  # about 6 seconds
GOODBYE_S: Final = 10  # until a client has read the last messages

logger = logging.getLogger(__name__)


class Coordinator:
    """Serves from `start` to `stop`; only one coordinator can use a data directory.

    Every acknowledged write is on disk. With `sync=False` it is only in the page cache, which survives the
    end of this process but not of the machine, and is meant for tests.
    """

    def __init__(
        self,
        data_dir: Path,
        host: str = "127.0.0.1",
        port: int = PORT,
        *,
        tick_ms: int = TICK_MS,
        sync: bool = True,
        max_connections: int = MAX_CONNECTIONS,
        authentication: Authentication | None = None,
        tls: TlsSettings | None = None,
    ) -> None:
        self.data_dir = data_dir
        self.host, self.port = host, port
        self.tick_ms = tick_ms
        self._sync = sync
        self.max_connections = max_connections
        self.authentication = authentication or Authentication()
        self._tls = tls
        self._context: ReloadingContext | None = None
        self.connections: dict[ZooKeeperConnection, None] = {}
        self._journal: Journal
        self._server: Acceptor
        self._reaper: asyncio.Task[None]
        self._failure: asyncio.Future[None]
        self.service: Service
        self.commit: GroupCommit
        self.received = 0
        self.sent = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()

    @property
    def address(self) -> str:
        """Return `host:port`, with the real port if 0 was requested."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    async def start(self) -> None:
        """Recover the state from the directory, and serve; raise CorruptJournal if the files are damaged."""
        if not is_loopback(self.host) and not self.authentication.is_required:
            raise CoordinationError(
                f"the coordinator must not serve {self.host or 'all interfaces'} without a credential: "
                "name a JAAS file with --credentials, or listen on 127.0.0.1"
            )
        if self._tls is not None:
            try:
                self._context = await asyncio.to_thread(ReloadingContext.for_listener, self._tls)
            except InvalidTlsSetting as error:
                raise CoordinationError(str(error)) from error
        loop = asyncio.get_running_loop()
        self._failure = loop.create_future()
        self._journal = await asyncio.to_thread(Journal, self.data_dir, tick_ms=self.tick_ms, sync=self._sync)
        self.commit = GroupCommit(self._journal, self._fail)
        self.service = Service(
            self._journal.state,
            write=self.commit.write,
            wall_ms=lambda: time.time_ns() // 1_000_000,
            monotonic_ms=_monotonic_ms,
            random_bytes=secrets.token_bytes,
            broken=self._fail,
            authentication=self.authentication,
        )
        self._journal.state.sessions.restart_clocks(_monotonic_ms())
        try:
            sockets = await bind_all(self.host, self.port)
            if self._context is None:
                self._server = PlainServer(sockets, lambda: ZooKeeperConnection(self))
            else:
                self._server = TlsServer(sockets, lambda: ZooKeeperConnection(self), self._context)
            await self._server.start_serving()
        except BaseException:
            await self.commit.stop()
            self._journal.close()
            raise
        self.port = self._server.sockets[0].getsockname()[1]
        self._reaper = loop.create_task(self._reap())
        self._reaper.add_done_callback(self._reaper_ended)
        logger.info(
            "coordinator on %s, data in %s, zxid 0x%x. It is a single node: if its machine is down, so is "
            "coordination. Use a ZooKeeper ensemble for several machines.",
            self.address,
            self.data_dir,
            self._journal.state.zxid,
        )

    async def stop(self) -> None:
        """Close all connections, finish pending writes, and release the directory."""
        self._reaper.cancel()
        self._server.close()
        for connection in list(self.connections):
            connection.close()  # no more requests, so that the commit can finish
        await self.commit.stop()
        for connection in list(self.connections):
            connection.abort()
        await asyncio.sleep(0)  # lets the transports close
        self._journal.close()
        if not self._failure.done():
            self._failure.set_result(None)

    def end_sessions(self) -> None:
        """End every session, for a start after which all clients are known to be dead.

        Otherwise sessions keep their timeouts over a restart, and ephemeral nodes exist that long.
        """
        for session in self._journal.state.sessions.all():
            self.service.close_session(session.session_id)

    async def wait_failed(self) -> None:
        """Return after `stop`; raise CoordinationError as soon as a write fails."""
        await asyncio.shield(self._failure)

    # Called by connections

    def admits(self, connection: ZooKeeperConnection) -> bool:
        if len(self.connections) >= self.max_connections:
            logger.warning("refused %s: there are %d connections", connection.address, len(self.connections))
            return False
        if self.authentication.is_required:
            # The oldest connection that has not authenticated makes room.
            strangers = [each for each in self.connections if not each.is_authenticated]
            if len(strangers) >= MAX_UNAUTHENTICATED:
                strangers[0].abort()
                self.lost(strangers[0])
        self.connections[connection] = None
        return True

    def lost(self, connection: ZooKeeperConnection) -> None:
        self.connections.pop(connection, None)

    def four_letter_word(self, word: bytes) -> str | None:
        """Return the answer to a four-letter word, or None if these bytes are not one."""
        if word not in WORDS:
            return None
        if word != SRVR and not is_loopback(self.host):  # in the words of ZooKeeper
            return f"{word.decode()} is not executed because it is not in the whitelist.\n"
        return WORDS[word](self)

    # Background work

    async def _reap(self) -> None:
        """Expire sessions, and close connections that never opened one."""
        interval_ms = self.tick_ms / 2
        ticks = 0
        before = _monotonic_ms()
        while True:
            await asyncio.sleep(interval_ms / 1000)
            now = _monotonic_ms()
            if now - before > interval_ms + self.tick_ms:
                # This process was stopped or starved: requests of clients are still waiting to be read.
                logger.warning("was stopped for %d ms; every session gets its whole timeout", now - before)
                self._journal.state.sessions.restart_clocks(now)
            before = now
            for session_id in self.service.expire():
                logger.info("session 0x%x expired", session_id)
            loop_now = asyncio.get_running_loop().time()
            for connection in list(self.connections):
                leaving = connection.closing_since
                if leaving is not None:
                    overdue = leaving < loop_now - GOODBYE_S
                else:
                    waits = not connection.requester.session_id or not self.authentication.admits(connection)
                    overdue = waits and connection.since < loop_now - HANDSHAKE_S
                if overdue:
                    connection.abort()
            ticks += 1
            if self._context is not None and ticks % (2 * TLS_REFRESH_TICKS) == 0:
                asyncio.get_running_loop().run_in_executor(None, self._context.refresh)

    def _reaper_ended(self, reaper: asyncio.Task[None]) -> None:
        if not reaper.cancelled() and (bug := reaper.exception()) is not None:
            self._fail(bug)  # sessions would never expire

    def _fail(self, error: BaseException) -> None:
        """Stop serving: the state in memory may differ from the log, and no client may see it."""
        if self._failure.done():
            return
        why = f"cannot write to {self.data_dir}" if isinstance(error, OSError) else "a bug in the coordinator"
        logger.critical("the coordinator stops: %s", why, exc_info=error)
        self.commit.give_up()
        self._reaper.cancel()
        self._server.close()
        for connection in list(self.connections):
            connection.abort()
        self._failure.set_exception(CoordinationError(f"{why}: {error}"))
        self._failure.exception()  # marks it as retrieved: waiting for it is optional


def _monotonic_ms() -> float:
    return time.monotonic() * 1000
