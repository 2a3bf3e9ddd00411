"""`get_many`, on both kinds of servers: many znodes with few requests, also below a chroot."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from kazoo.exceptions import UnimplementedError

from coordination.conftest import TICK_MS, Server
from headrace.coordination.session import ZooKeeperSession

T = TypeVar("T")
PATHS = [f"/many/{number}" for number in range(450)]


def play(address: str, story: Callable[[ZooKeeperSession], Awaitable[T]]) -> T:
    async def run() -> T:
        session = await ZooKeeperSession.connect(
            address, session_timeout_ms=20 * TICK_MS, connect_timeout_ms=20_000
        )
        try:
            return await story(session)
        finally:
            await session.close()

    return asyncio.run(run())


@pytest.fixture
def address(zk: Any, server: Server, namespace: str) -> str:
    zk.ensure_path("/below/many")
    for number in range(0, 450, 3):
        zk.create(f"/below/many/{number}", b"%d" % number)
    zk.set("/below/many/3", b"changed")
    zk.create("/below/many/1", b"", ephemeral=True)
    return f"{server.address}{namespace}/below"


def test_each_znode_is_returned_in_its_place(address: str) -> None:
    async def story(session: ZooKeeperSession) -> None:
        found = await session.get_many(PATHS)
        assert found == [await session.get(path) for path in PATHS]
        assert [number for number, each in enumerate(found) if each is not None][:3] == [0, 1, 3]
        assert found[3] is not None
        assert (found[3].data, found[3].version) == (b"changed", 1)
        assert await session.get_many([]) == []

    play(address, story)


def test_a_server_without_multi_read_is_asked_for_one_znode_at_a_time(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_session: ZooKeeperSession, _paths: Any) -> Any:
        raise UnimplementedError

    monkeypatch.setattr(ZooKeeperSession, "_multi_read", unknown)

    async def story(session: ZooKeeperSession) -> None:
        assert await session.get_many(PATHS) == [await session.get(path) for path in PATHS]

    play(address, story)
