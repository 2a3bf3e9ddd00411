"""However many deadlines pass at once, the event loop serves others after a few decisions."""

import asyncio
from collections import Counter

from headrace.broker.coordinators.shard import EXPIRED_TOGETHER, Expirations
from headrace.broker.slices import Steps

SHARDS, DEADLINES = 50, 200


class Turns:
    """Counts the turns of an event loop until it is stopped."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.number = 0
        self._loop = loop

    def count(self) -> None:
        self.number += 1
        self._handle = self._loop.call_soon(self.count)

    def stop(self) -> None:
        self._handle.cancel()


def expired(shards: int, deadlines: int) -> tuple[Counter[int], list[int]]:
    """Let the deadlines of all shards pass at once: decisions in each turn, and the shards in order."""
    loop = asyncio.new_event_loop()
    turns, in_turn, order = Turns(loop), Counter[int](), list[int]()
    expirations = Expirations(lambda: loop)

    def expire(shard: int) -> Steps[None]:
        for _ in range(deadlines):
            in_turn[turns.number] += 1
            order.append(shard)
            yield

    async def all_done() -> None:
        turns.count()
        for shard in range(shards):
            expirations.add(expire(shard))
        while len(order) < shards * deadlines:  # noqa: ASYNC110  there is nothing to wait for but turns
            await asyncio.sleep(0)
        turns.stop()

    loop.run_until_complete(asyncio.wait_for(all_done(), 30))
    loop.close()
    return in_turn, order


def test_decisions_of_all_coordinators_together_are_few_in_one_turn() -> None:
    in_turn, order = expired(SHARDS, DEADLINES)

    assert max(in_turn.values()) <= EXPIRED_TOGETHER
    assert Counter(order) == dict.fromkeys(range(SHARDS), DEADLINES)
    assert order == sorted(order)  # one coordinator after the other


def test_a_single_deadline_is_carried_out_at_once() -> None:
    in_turn, _ = expired(1, 1)

    assert len(in_turn) == 1
