"""The clients of the users who have authenticated lately: bounded, and closed when they are idle.

All methods are for the event loop; what waits for brokers runs in threads. An entry is found by a keyed hash
of the credentials. Brokers are asked about the credentials when a user comes for the first time, and again
after a minute: a changed password ends the entry with everything in it, tails and consumers included.
"""

import asyncio
import contextlib
import logging
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import Final, TypeVar

from anyio import CapacityLimiter, to_thread

from headrace.client.errors import AuthenticationFailed, ClientError, Unreachable
from headrace.client.wire.security import Security
from headrace.gateway.clients import Clients
from headrace.gateway.problems import Problem
from headrace.gateway.users.credentials import BadCredentials, Credentials, fingerprint
from headrace.gateway.users.logins import BrokerLogin, LoginEnded

MAX_USERS: Final = 64
IDLE_S: Final = 600.0
VERIFYING: Final = 8  # at a time, each in a thread
WAITING: Final = 64  # verifications that wait for one of those
SWEEP_S: Final = 30.0
SHORTEST_SWEEP_S: Final = 0.5

logger = logging.getLogger(__name__)

Accept = Callable[[Credentials], BrokerLogin]
Make = Callable[[Security], Clients]
Answer = TypeVar("Answer")


class _Entry:
    def __init__(self, clients: Clients, login: BrokerLogin, now_s: float) -> None:
        self.clients = clients
        self.login = login
        self.used_s = now_s
        self.due_s = now_s + login.verified_for_s  # when the login has to be verified again
        self.verifying = asyncio.Lock()
        self.requests = 0  # in flight

    @property
    def is_busy(self) -> bool:
        return self.requests > 0 or self.clients.hub.is_busy

    def close(self) -> None:
        """Close the clients, and then end the login. It blocks."""
        try:
            self.clients.close()
        finally:
            self.login.end()


class UserPool:
    """The users of a gateway, least recently used first."""

    def __init__(self, accept: Accept, make: Make, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._accept = accept
        self._make = make
        self._now_s = now_s
        self._secret = secrets.token_bytes(32)
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._joining: dict[bytes, asyncio.Task[_Entry]] = {}
        self._threads = CapacityLimiter(VERIFYING)
        self._asking = 0
        self._closing: set[asyncio.Future[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    @contextlib.asynccontextmanager
    async def clients(self, credentials: Credentials) -> AsyncIterator[Clients]:
        """Yield the user's clients, which stay open meanwhile; the errors are those of Verifier.accept."""
        key = fingerprint(self._secret, credentials)
        entry = self._entries.get(key)
        if entry is not None and not await self._verify_again(key, entry):
            entry = self._entries.get(key)
        if entry is None:
            # Requests with the same credentials wait for one verification.
            joining = self._joining.get(key)
            if joining is None:
                joining = self._joining[key] = asyncio.ensure_future(self._add(key, credentials))
                joining.add_done_callback(lambda _: self._joining.pop(key, None))
            entry = await asyncio.shield(joining)
        entry.requests += 1
        entry.used_s = self._now_s()
        if key in self._entries:
            self._entries.move_to_end(key)
        try:
            yield entry.clients
        finally:
            entry.requests -= 1
            entry.used_s = self._now_s()

    def is_known(self, credentials: Credentials) -> bool:
        """Return whether brokers have accepted these credentials lately."""
        entry = self._entries.get(fingerprint(self._secret, credentials))
        return entry is not None and self._now_s() < entry.due_s

    def doubt(self, credentials: Credentials) -> None:
        """Ask brokers again at the next request: one of them has just refused these credentials."""
        entry = self._entries.get(fingerprint(self._secret, credentials))
        if entry is not None:
            entry.due_s = -math.inf

    def end_streams(self) -> None:
        for entry in self._entries.values():
            entry.clients.end_streams()

    async def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        for key in list(self._entries):
            self._drop(key)
        if self._closing:
            await asyncio.wait(self._closing)

    async def _add(self, key: bytes, credentials: Credentials) -> _Entry:
        login = await self._ask(lambda: self._accept(credentials))
        if len(self._entries) >= MAX_USERS:
            idle = next((key for key, entry in self._entries.items() if not entry.is_busy), None)
            if idle is None:
                self._in_thread(login.end)
                raise Problem(50303, f"{MAX_USERS} users are active, the most at a time: try again later")
            self._drop(idle)
        entry = self._entries[key] = _Entry(self._make(login.security), login, self._now_s())
        if self._sweeper is None:
            self._sweeper = asyncio.ensure_future(self._sweep())
        return entry

    async def _verify_again(self, key: bytes, entry: _Entry) -> bool:
        """Verify the login if that is due; return False if the entry has ended, and another may take over."""
        if self._now_s() < entry.due_s:
            return True
        async with entry.verifying:
            if self._entries.get(key) is not entry:  # dropped while this request waited
                return False
            if self._now_s() < entry.due_s:
                return True
            try:
                await self._ask(entry.login.verify)
            except Unreachable:
                return True  # the clients of the entry do not reach a broker either, and say so
            except LoginEnded:
                self._drop(key)
                return False
            except (AuthenticationFailed, BadCredentials):
                self._drop(key)
                raise
            entry.due_s = self._now_s() + entry.login.verified_for_s
            return True

    async def _ask(self, call: Callable[[], Answer]) -> Answer:
        if self._asking >= VERIFYING + WAITING:
            raise Problem(50303, "too many users authenticate at the same time: try again later")
        self._asking += 1
        try:
            return await to_thread.run_sync(call, limiter=self._threads)
        finally:
            self._asking -= 1

    def _drop(self, key: bytes) -> None:
        """Forget the entry, and close its clients in a thread."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        entry.clients.end_streams()
        self._in_thread(entry.close)

    def _in_thread(self, close: Callable[[], None]) -> None:
        closing = asyncio.ensure_future(to_thread.run_sync(close))
        self._closing.add(closing)

        def closed(closing: "asyncio.Future[None]") -> None:
            self._closing.discard(closing)
            if not closing.cancelled() and closing.exception() is not None:
                logger.error("a user's clients could not be closed", exc_info=closing.exception())

        closing.add_done_callback(closed)

    async def _sweep(self) -> None:
        """Drop entries that are idle for IDLE_S, and verify the users of those that are busy for long."""
        while True:
            # A busy entry has to be verified in time: its login ends otherwise.
            due_s = min((entry.due_s for entry in self._entries.values() if entry.is_busy), default=math.inf)
            await asyncio.sleep(min(SWEEP_S, max(SHORTEST_SWEEP_S, due_s - self._now_s())))
            since_s = self._now_s() - IDLE_S
            for key, entry in list(self._entries.items()):
                if entry.is_busy:
                    with contextlib.suppress(ClientError, BadCredentials, Problem):
                        await self._verify_again(key, entry)
                elif entry.used_s < since_s:
                    self._drop(key)
