"""What a tail does while its filter thinks."""

import asyncio
import threading

from headrace.client.records.one_by_one import Record
from headrace.gateway.rest.tails import Tail

RECORDS = [Record(value=b"v", partition=0, offset=offset) for offset in range(3)]


def is_free(lock: threading.Condition) -> bool:
    """Whether another thread could have it now."""
    found: list[bool] = []

    def look() -> None:
        found.append(lock.acquire(blocking=False))
        if found[0]:
            lock.release()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return found[0]


def test_a_filter_is_asked_while_the_event_loop_may_take_records() -> None:
    """A filter may wait for the registry; to take what has come is the event loop's, which may not wait."""

    async def follow() -> list[tuple[int, bool]]:
        seen: list[tuple[int, bool]] = []

        def fits(record: Record) -> bool:
            seen.append((record.offset, is_free(tail._room)))
            return record.offset != 1

        tail = Tail(fits, lambda _: None)
        tail._add(RECORDS, {0: 0})
        taken = await tail.take(10)
        assert taken is not None
        assert [each.offset for each in taken.records] == [0, 2]
        assert taken.positions == {0: 3}
        return seen

    assert asyncio.run(follow()) == [(0, True), (1, True), (2, True)]


def test_a_tail_that_was_stopped_asks_its_filter_nothing_more() -> None:
    async def follow() -> list[int]:
        seen: list[int] = []

        def fits(record: Record) -> bool:
            seen.append(record.offset)
            tail.stop()
            return True

        tail = Tail(fits, lambda _: None)
        tail._add(RECORDS, {0: 0})
        return seen

    assert asyncio.run(follow()) == [0]
