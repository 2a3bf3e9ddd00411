import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace.broker.errors import NotLeader
from headrace.broker.replicas.purgatory import WaitingAcks, WaitingFetch


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def test_a_batch_is_acknowledged_when_the_high_watermark_has_passed_it(
    loop: asyncio.AbstractEventLoop,
) -> None:
    acks = WaitingAcks()
    first, second = acks.add(5, loop), acks.add(9, loop)

    acks.complete(7)
    assert first.result() is None
    assert not second.done()
    acks.complete(9)

    assert second.result() is None


def test_every_batch_is_refused_when_this_broker_does_not_lead_any_more(
    loop: asyncio.AbstractEventLoop,
) -> None:
    acks, error = WaitingAcks(), NotLeader("broker 2 leads")
    waiting = [acks.add(5, loop), acks.add(9, loop)]

    acks.fail(error)

    assert [each.result() for each in waiting] == [error, error]


def test_a_request_that_has_timed_out_is_left_alone(loop: asyncio.AbstractEventLoop) -> None:
    acks = WaitingAcks()
    cancelled, answered = acks.add(1, loop), acks.add(2, loop)
    cancelled.cancel()

    acks.complete(2)

    assert answered.result() is None


class Waited:
    def __init__(self) -> None:
        self.fetches: set[WaitingFetch] = set()

    def add_waiting(self, fetch: WaitingFetch, *, as_replica: bool) -> None:
        assert not as_replica
        self.fetches.add(fetch)

    def discard_waiting(self, fetch: WaitingFetch) -> None:
        self.fetches.discard(fetch)


@pytest.mark.parametrize(
    "wake",
    [lambda fetch: (fetch.arrived(4), fetch.arrived(6)), lambda fetch: fetch.look_again()],
    ids=["enough bytes", "something else"],
)
def test_a_fetch_is_completed_once_and_leaves_its_partitions(
    loop: asyncio.AbstractEventLoop, wake: Callable[[WaitingFetch], Any]
) -> None:
    partitions = [Waited(), Waited()]
    fetch = WaitingFetch(partitions, missing=10, max_wait_ms=60_000, loop=loop)
    fetch.arrived(0)
    assert not fetch.done.done()

    wake(fetch)

    assert fetch.done.done()
    assert [each.fetches for each in partitions] == [set(), set()]
