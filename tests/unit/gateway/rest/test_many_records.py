"""A request with many records: others have their turn, and brokers are asked once."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from threading import Event

import pytest
from starlette.requests import Request
from starlette.types import Message

from headrace.gateway.configuration import GatewaySettings
from headrace.gateway.problems import Problem, retry_after, status_of
from headrace.gateway.reach import Reach
from headrace.gateway.registry.registry import SchemaRegistry
from headrace.gateway.rest.hub import SEARCHES, WAITING, Hub
from headrace.gateway.rest.topic_cache import KnownTopics
from headrace.gateway.rest.v3_produce import Prepared, read_record
from headrace.gateway.rest.v3_records import MAX_HELD_BYTES, TURN, RecordProducer
from headrace.gateway.rest.v3_resources import Links


class Topics(KnownTopics):
    """One topic with one partition."""

    def __init__(self, reach: Reach) -> None:
        super().__init__(reach)
        self.reads = 0

    def refresh(self, topic: str) -> int:
        self.reads += 1
        self._counts[topic] = 1
        return 1


@pytest.fixture
def hub() -> Iterator[Hub]:
    with closing(Reach(GatewaySettings(bootstrap="127.0.0.1:1"))) as reach:
        hub = Hub(reach, SchemaRegistry(reach))
        hub.topics = Topics(reach)
        yield hub


def test_others_have_their_turn_while_records_are_prepared(hub: Hub) -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def prepare() -> list[Prepared | Exception]:
        beside = asyncio.create_task(others())
        producer = RecordProducer(hub, Links("http://gateway/", "cluster"), "t")
        texts = [b'{"value":{"type":"JSON","data":1}}'] * (10 * TURN)
        await hub.topics.partitions("t")
        nonlocal turns
        turns = 0
        prepared = [each async for part in producer.prepare(texts, read_record) for each in part]
        beside.cancel()
        return [*prepared]

    prepared = asyncio.run(prepare())

    assert all(isinstance(each, Prepared) for each in prepared)
    assert turns >= 9


def test_partitions_that_are_not_there_are_asked_for_once_in_a_request(hub: Hub) -> None:
    async def prepare() -> list[Prepared | Exception]:
        producer = RecordProducer(hub, Links("http://gateway/", "cluster"), "t")
        texts = [b'{"partition_id":%d}' % number for number in range(100)]
        return [each async for part in producer.prepare(texts, read_record) for each in part]

    first, *others = asyncio.run(prepare())

    assert isinstance(first, Prepared)
    assert all(isinstance(each, Problem) and each.code == 40402 for each in others)
    assert isinstance(hub.topics, Topics)
    assert hub.topics.reads == 2  # how many there are, and whether some were added


def test_records_that_are_large_as_they_are_written_are_sent_before_more_are_prepared(hub: Hub) -> None:
    text = b'{"value":{"type":"STRING","data":"%b"}}' % (b"x" * (MAX_HELD_BYTES // 4))

    async def prepare() -> list[int]:
        producer = RecordProducer(hub, Links("http://gateway/", "cluster"), "t")
        return [len(part) async for part in producer.prepare([text] * 12, read_record)]

    assert asyncio.run(prepare()) == [5, 5, 2]


def test_few_searches_run_at_a_time_and_those_beyond_the_waiting_are_refused(hub: Hub) -> None:
    goes_on = Event()
    running = []

    async def stay_connected() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    request = Request({"type": "http"}, stay_connected)

    def work(_cancelled: Event) -> None:
        running.append(1)
        goes_on.wait(30)

    async def search() -> Problem:
        searches = [asyncio.create_task(hub.search(request, work)) for _ in range(SEARCHES + WAITING)]
        while len(running) < SEARCHES:  # noqa: ASYNC110  threads are what is waited for
            await asyncio.sleep(0.01)
        with pytest.raises(Problem) as refused:
            await hub.search(request, work)
        assert len(running) == SEARCHES
        goes_on.set()
        await asyncio.gather(*searches)
        await hub.search(request, work)  # there is room again
        return refused.value

    problem = asyncio.run(search())

    assert problem.code == 42902
    assert retry_after(status_of(problem.code)) == {"retry-after": "1"}
    assert len(running) == SEARCHES + WAITING + 1
