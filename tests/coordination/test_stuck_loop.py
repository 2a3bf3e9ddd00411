"""A session of a process whose event loop is stuck expires, although kazoo's thread is well."""

import asyncio
import threading

import pytest

from coordination.conftest import TICK_MS, WAIT_S, Server
from headrace.coordination.session import SessionState, ZooKeeperSession

SESSION_MS = 1_200


class StuckClient(threading.Thread):
    """A session whose event loop blocks until `release` is set, as in a computation without an end."""

    def __init__(self, address: str, path: str) -> None:
        super().__init__()
        self._address, self._path = address, path
        self.is_stuck, self.release = threading.Event(), threading.Event()
        self.states: list[SessionState] = []

    def run(self) -> None:
        asyncio.run(self._live())

    async def _live(self) -> None:
        session = await ZooKeeperSession.connect(
            self._address, session_timeout_ms=SESSION_MS, connect_timeout_ms=int(WAIT_S * 1000)
        )
        lost = asyncio.Event()

        def note(state: SessionState) -> None:
            self.states.append(state)
            if state is SessionState.LOST:
                lost.set()

        session.on_state(note)
        await session.create(self._path, b"", ephemeral=True)
        self.is_stuck.set()
        self.release.wait()  # on the loop's own thread: nothing else of it runs
        async with asyncio.timeout(WAIT_S):
            await lost.wait()
        await session.close()


def test_a_stuck_event_loop_loses_its_session(server: Server, namespace: str) -> None:
    client = StuckClient(server.address + namespace, "/mine")
    client.start()
    try:
        assert client.is_stuck.wait(WAIT_S)
        asyncio.run(gone(server.address + namespace, "/mine"))
    finally:
        client.release.set()
        client.join(WAIT_S)
    assert SessionState.LOST in client.states


def test_a_session_whose_loop_is_idle_goes_on(server: Server, namespace: str) -> None:
    async def live() -> list[SessionState]:
        session = await ZooKeeperSession.connect(
            server.address + namespace, session_timeout_ms=SESSION_MS, connect_timeout_ms=int(WAIT_S * 1000)
        )
        states: list[SessionState] = []
        session.on_state(states.append)
        await session.create("/mine", b"", ephemeral=True)
        await asyncio.sleep(2.5 * SESSION_MS / 1000)
        assert await session.exists("/mine")
        await session.close()
        return states

    assert asyncio.run(live()) == []


async def gone(address: str, path: str) -> None:
    """Return when the znode is gone."""
    session = await ZooKeeperSession.connect(
        address, session_timeout_ms=4_000, connect_timeout_ms=int(WAIT_S * 1000)
    )
    try:
        async with asyncio.timeout(WAIT_S):
            while True:
                changed = asyncio.Event()
                if not await session.exists(path, changed.set):
                    return
                await changed.wait()
    finally:
        await session.close()


def test_the_timeout_that_counts_is_the_one_that_was_granted(server: Server, namespace: str) -> None:
    """A lease that was counted by the timeout that was asked for could outlive the session."""

    async def granted() -> float:
        session = await ZooKeeperSession.connect(
            server.address + namespace, session_timeout_ms=3_600_000, connect_timeout_ms=int(WAIT_S * 1000)
        )
        await session.sync()  # kazoo sends requests after the handshake, which grants the timeout
        timeout_s = session.timeout_s
        await session.close()
        return timeout_s

    assert asyncio.run(granted()) == pytest.approx(20 * TICK_MS / 1000)
