"""A request with many records: others have their turn, and brokers are asked once."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest
from fastapi import FastAPI

from headrace.http.gateway.hub import Hub
from headrace.http.gateway.known_topics import KnownTopics
from headrace.http.gateway.v3_envelope import Links
from headrace.http.gateway.v3_produce import Prepared, read_record
from headrace.http.gateway.v3_records import TURN, Producing
from headrace.http.problems import Problem
from headrace.http.reach import Reach
from headrace.http.settings import GatewaySettings


class Topics(KnownTopics):
    """One topic with one partition."""

    def __init__(self, reach: Reach) -> None:
        super().__init__(reach)
        self.asked = 0

    def ask(self, topic: str) -> int:
        self.asked += 1
        self._keep(topic, 1)
        return 1


@pytest.fixture
def hub() -> Iterator[Hub]:
    app = FastAPI()
    app.state.registry = None
    with closing(Reach(GatewaySettings(bootstrap="127.0.0.1:1"))) as reach:
        hub = Hub(app, reach)
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
        producing = Producing(hub, Links("http://gateway/", "cluster"), "t")
        texts = [b'{"value":{"type":"JSON","data":1}}'] * (10 * TURN)
        await hub.topics.partitions("t")
        nonlocal turns
        turns = 0
        prepared = await producing.prepare(texts, read_record)
        beside.cancel()
        return [*prepared]

    prepared = asyncio.run(prepare())

    assert all(isinstance(each, Prepared) for each in prepared)
    assert turns >= 9


def test_partitions_that_are_not_there_are_asked_for_once_in_a_request(hub: Hub) -> None:
    async def prepare() -> list[Prepared | Exception]:
        producing = Producing(hub, Links("http://gateway/", "cluster"), "t")
        texts = [b'{"partition_id":%d}' % number for number in range(100)]
        return [*await producing.prepare(texts, read_record)]

    first, *others = asyncio.run(prepare())

    assert isinstance(first, Prepared)
    assert all(isinstance(each, Problem) and each.code == 40402 for each in others)
    assert isinstance(hub.topics, Topics)
    assert hub.topics.asked == 2  # how many there are, and whether some were added
