"""Batches in line: read in threads, appended in the order in which they came, or refused."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.errors import NotLeader, TimedOut
from headrace.broker.records.inspections import OVERHEAD_BYTES, THREADS, Inspections, Outcome
from headrace.broker.replicas.partition import Partition
from headrace.coordination.znodes import PartitionState
from headrace.protocol.compression import Compression
from headrace.protocol.errors import KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.storage.append.inspection import PreparedBatch, prepare
from headrace.storage.config import LogConfig
from headrace.storage.errors import MessageTooLarge
from support.logs import open_test_log, read_all
from support.records import headers_of, make_batch

US, OTHER = 1, 2
PACKED = make_batch(3, compression=Compression.ZSTD)
SMALL = make_batch(1)


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run


class NoRules:
    """A broker without a topic that has a rule about schemas."""

    def __init__(self) -> None:
        self.rules: dict[str, Any] = {}

    async def refusal(self, _topic: str, _batch: object) -> KafkaError | None:
        return None


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    log = open_test_log(tmp_path / "t-0", LogConfig(compact=True))
    partition = Partition(TopicPartition("t", 0), b"", log, US)
    lead(partition, US, epoch=0)
    yield partition
    log.release()


def lead(partition: Partition, leader: int, epoch: int) -> None:
    state = PartitionState(
        topic="t",
        partition=0,
        leader=leader,
        leader_epoch=epoch,
        isr=(leader,),
        controller_epoch=1,
        version=epoch,
    )
    partition.become(state, (US, OTHER), now_ms=0)


@asynccontextmanager
async def started() -> AsyncIterator[Inspections]:
    inspections = Inspections(NoRules())  # type: ignore[arg-type]
    try:
        yield inspections
    finally:
        await inspections.stop()


@asynccontextmanager
async def busy_threads(inspections: Inspections) -> AsyncIterator[None]:
    """All threads are at work until the block ends."""
    release = threading.Event()
    begun = [threading.Event() for _ in range(THREADS)]

    def work(number: int) -> None:
        begun[number].set()
        release.wait()

    tasks = [asyncio.create_task(inspections.threads.run(work, number)) for number in range(THREADS)]
    for each in begun:
        await asyncio.to_thread(each.wait)
    try:
        yield
    finally:
        release.set()
        await asyncio.gather(*tasks)


def offset_of(partition: Partition, outcome: Outcome) -> int | str:
    """Append as a Produce does; the base offset, or why not."""
    if isinstance(outcome, PreparedBatch):
        try:
            return partition.append(outcome, acks_all=False).appended.base_offset
        except KafkaError as error:
            outcome = error
    return outcome.code.name


def send(
    inspections: Inspections, partition: Partition, data: bytes | bytearray
) -> "asyncio.Future[int | str]":
    """Send a batch; where it went, once that is known."""
    if inspections.must_wait(partition, data):
        return inspections.enqueue(partition, data, lambda outcome: offset_of(partition, outcome))
    done = asyncio.get_running_loop().create_future()
    done.set_result(partition.append(data, acks_all=False).appended.base_offset)
    return done


@on_a_loop
async def test_small_and_plain_batches_are_appended_at_once(partition: Partition) -> None:
    async with started() as inspections:
        assert send(inspections, partition, bytes(SMALL)).done()

        partition.log.config = LogConfig()
        assert send(inspections, partition, bytes(PACKED)).done(), "nothing requires that its records be read"


@on_a_loop
async def test_a_batch_that_is_too_large_is_refused_without_waiting(partition: Partition) -> None:
    partition.log.config = replace(partition.log.config, max_message_bytes=len(PACKED) - 1)
    async with started() as inspections:
        assert not inspections.must_wait(partition, PACKED)
        with pytest.raises(MessageTooLarge):
            send(inspections, partition, PACKED)


@on_a_loop
async def test_a_compressed_batch_is_read_in_a_thread(partition: Partition) -> None:
    async with started() as inspections:
        async with busy_threads(inspections):
            sent = send(inspections, partition, PACKED)
            await asyncio.sleep(0)
            assert not sent.done()

        assert await sent == 0


@on_a_loop
async def test_nobody_is_overtaken(partition: Partition) -> None:
    async with started() as inspections:
        async with busy_threads(inspections):
            sent = [send(inspections, partition, bytes(each)) for each in (PACKED, SMALL, PACKED, SMALL)]
            partition.log.config = LogConfig()  # nothing requires a thread any more
            sent.append(send(inspections, partition, bytes(SMALL)))

        assert await asyncio.gather(*sent) == [0, 3, 4, 7, 8]
        await asyncio.sleep(0)
        assert send(inspections, partition, bytes(SMALL)).done(), "the line is empty"


@on_a_loop
async def test_a_batch_is_appended_only_by_whoever_leads_when_it_has_been_read(partition: Partition) -> None:
    async with started() as inspections:
        async with busy_threads(inspections):
            sent = [send(inspections, partition, bytes(PACKED)) for _ in range(2)]
            await asyncio.sleep(0)
            lead(partition, OTHER, epoch=1)

        assert await asyncio.gather(*sent) == ["NOT_LEADER_OR_FOLLOWER"] * 2
    assert read_all(partition.log) == []


@on_a_loop
async def test_a_batch_gets_the_epoch_of_the_leader_that_appends_it(partition: Partition) -> None:
    async with started() as inspections:
        async with busy_threads(inspections):
            sent = send(inspections, partition, PACKED)
            await asyncio.sleep(0)
            lead(partition, OTHER, epoch=1)
            lead(partition, US, epoch=2)

        assert await sent == 0
    assert headers_of(read_all(partition.log)[0])[0].leader_epoch == 2


@on_a_loop
async def test_a_batch_is_checked_by_the_settings_that_it_is_appended_under(partition: Partition) -> None:
    async with started() as inspections:
        async with busy_threads(inspections):
            sent = send(inspections, partition, PACKED)
            await asyncio.sleep(0)
            partition.log.config = replace(partition.log.config, compression=Compression.LZ4)

        assert await sent == 0
    assert headers_of(read_all(partition.log)[0])[0].compression is Compression.LZ4


@on_a_loop
async def test_a_batch_stays_in_line_when_its_client_goes(partition: Partition) -> None:
    async with started() as inspections:
        async with busy_threads(inspections):
            first, second = (send(inspections, partition, bytes(PACKED)) for _ in range(2))
            first.cancel()

        assert await second == 3


@on_a_loop
async def test_what_is_wrong_with_a_batch_does_not_hold_up_the_next(partition: Partition) -> None:
    broken = bytearray(PACKED)
    broken[-1] ^= 1
    async with started() as inspections:
        sent = [send(inspections, partition, each) for each in (broken, bytes(PACKED))]

        assert await asyncio.gather(*sent) == ["CORRUPT_MESSAGE", 0]


@on_a_loop
async def test_a_failure_of_ours_is_raised_where_the_reply_is_waited_for(partition: Partition) -> None:
    async with started() as inspections:
        failing = inspections.enqueue(partition, PACKED, lambda _: 1 // 0)
        after = send(inspections, partition, bytes(PACKED))

        with pytest.raises(ZeroDivisionError):
            await failing
        assert await after == 0


@on_a_loop
async def test_a_failure_while_records_are_read_holds_up_nobody(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no error of Kafka's is a bug of ours: it ends one connection."""
    failures = iter([ZeroDivisionError("a bug")])

    def failing(*arguments: Any) -> PreparedBatch:
        for each in failures:
            raise each
        return prepare(*arguments)

    monkeypatch.setattr("headrace.broker.records.inspections.prepare", failing)
    async with started() as inspections:
        first, second = (send(inspections, partition, bytes(PACKED)) for _ in range(2))

        with pytest.raises(ZeroDivisionError):
            await first
        assert await second == 0


@on_a_loop
async def test_only_so_many_bytes_wait(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 2 * (len(PACKED) + OVERHEAD_BYTES)
    monkeypatch.setattr("headrace.broker.records.inspections.MAX_WAITING_BYTES", most)
    async with started() as inspections:
        async with busy_threads(inspections):
            sent = [send(inspections, partition, bytes(PACKED)) for _ in range(2)]
            with pytest.raises(TimedOut):
                send(inspections, partition, bytes(PACKED))

        assert await asyncio.gather(*sent) == [0, 3]
        assert await send(inspections, partition, bytes(PACKED)) == 6


@on_a_loop
async def test_whoever_waits_when_the_broker_stops_is_told_so(partition: Partition) -> None:
    async with started() as inspections:
        async with busy_threads(inspections):
            sent = [send(inspections, partition, bytes(PACKED)) for _ in range(3)]
            await asyncio.sleep(0)
            stopping = asyncio.create_task(inspections.stop())
            await asyncio.sleep(0)
        await stopping

        assert await asyncio.gather(*sent) == ["NOT_LEADER_OR_FOLLOWER"] * 3
        with pytest.raises(NotLeader):
            send(inspections, partition, bytes(PACKED))
    assert read_all(partition.log) == []
