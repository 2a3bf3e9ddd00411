"""What a long poll costs: counted in a broker that runs inside the test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.replicas.partition import Partition
from headrace.broker.server import Broker
from headrace.broker.settings.config import BrokerConfig
from headrace.coordination.embedded.server import Coordinator
from support.records import make_batch
from wire.raw import frame_of
from wire.requests import fetch_request, produce_request

WAITERS = 20
APPENDS = 5


@asynccontextmanager
async def running_broker(root: Path) -> AsyncIterator[Broker]:
    async with Coordinator(root / "coordinator", port=0, sync=False) as coordinator:
        settings = {
            "broker.id": "1",
            "log.dirs": str(root / "logs"),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "zookeeper.connect": coordinator.address,
        }
        broker = Broker(BrokerConfig.of(settings))
        await broker.start()
        try:
            yield broker
        finally:
            await broker.stop()


async def connect(broker: Broker) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(broker.endpoints[0].host, broker.endpoints[0].port)


async def reply(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(size)


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 (what it waits for has no event)
            await asyncio.sleep(0.001)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offset of every read of a partition, by anybody."""
    seen: list[int] = []
    read = Partition.read

    def counted(self: Partition, offset: int, *args: Any, **options: Any) -> Any:
        seen.append(offset)
        return read(self, offset, *args, **options)

    monkeypatch.setattr(Partition, "read", counted)
    return seen


def test_a_fetch_that_waits_reads_twice_however_long_it_waits(tmp_path: Path, reads: list[int]) -> None:
    async def story() -> None:
        async with running_broker(tmp_path) as broker:
            await broker.topic_admin.create("t", partitions=1, replicas=1)
            await broker.topic_admin.propagated()
            await broker.topic_admin.create("other", partitions=1, replicas=1)
            await broker.topic_admin.propagated()
            size = len(make_batch(1))
            writer_in, writer_out = await connect(broker)
            waiters = [await connect(broker) for _ in range(WAITERS)]
            waiting = fetch_request("t", max_wait_ms=60_000, min_bytes=APPENDS * size)
            for _, out in waiters:
                out.write(frame_of(waiting, 12))
            await until(lambda: len(reads) == WAITERS)

            for topic in ["other"] * 30 + ["t"] * APPENDS:
                writer_out.write(frame_of(produce_request(topic), 9))
                await reply(writer_in)

            for incoming, out in waiters:
                await reply(incoming)
                out.close()
            writer_out.close()
            assert len(reads) == 2 * WAITERS

    asyncio.run(story())


def test_clients_that_leave_while_they_wait_are_forgotten(tmp_path: Path, reads: list[int]) -> None:
    async def story() -> None:
        async with running_broker(tmp_path) as broker:
            await broker.topic_admin.create("t", partitions=1, replicas=1)
            await broker.topic_admin.propagated()
            partition = broker.partition("t", 0)
            for _ in range(WAITERS):
                _, out = await connect(broker)
                out.write(frame_of(fetch_request("t", max_wait_ms=60_000), 12))
                await out.drain()
                out.transport.abort()

            await until(lambda: not partition._readers and not broker.connections.all())
            assert len(reads) <= WAITERS

    asyncio.run(story())
