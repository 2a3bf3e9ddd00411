"""The newest of several partitions, read backwards in windows; of logs with gaps, and within bounds."""

import time
from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from headrace.client.records.following import Follower
from headrace.client.records.one_by_one import Record
from headrace.client.records.scanning_back import Backwards, Bounds

LARGE = 10**9


class Logs:
    """Partitions in memory, read as a follower reads them: a few records at a time, onwards only."""

    def __init__(self, *partitions: Sequence[Record], ends: Sequence[int] = ()) -> None:
        self._logs = partitions
        self.begins = dict.fromkeys(range(len(partitions)), 0)
        self.positions = dict(enumerate(ends or [log[-1].offset + 1 if log else 0 for log in partitions]))
        self.unfinished: set[int] = set()

    def place(self, positions: Mapping[int, int]) -> None:
        self._at = dict(positions)
        self.unfinished = set(positions)

    def step(self, _timeout_s: float) -> list[Record]:
        came: list[Record] = []
        for index in sorted(self.unfinished):
            some = [each for each in self._logs[index] if each.offset >= self._at[index]][:3]
            if some:
                self._at[index] = some[-1].offset + 1
            else:
                self.unfinished.discard(index)
            came += some
        return came


def log(partition: int, offsets: Sequence[int], *, every_ms: int = 1, size_bytes: int = 1) -> list[Record]:
    return [
        Record(value=b"x" * size_bytes, partition=partition, offset=offset, timestamp_ms=offset * every_ms)
        for offset in offsets
    ]


def search(
    logs: Logs,
    *,
    found: int = LARGE,
    records: int = LARGE,
    size_bytes: int = LARGE,
    only: Sequence[int] | None = None,
) -> Backwards[Record]:
    bounds = Bounds(found=found, records=records, size_bytes=size_bytes, time_s=60)
    back = Backwards(
        cast("Follower", logs),
        LARGE,
        lambda records: [only is None or each.offset in only for each in records],
        bounds,
        time.monotonic() + bounds.time_s,
        keep=lambda record: record,
    )
    back.run()
    return back


def places(back: Backwards[Record]) -> list[tuple[int, int]]:
    return [(each.partition or 0, each.offset) for each in back.found]


@pytest.mark.parametrize("offsets", [range(0, 1000, 7), [0, 999], [5], [], [*range(10), *range(900, 910)]])
def test_gaps_and_an_end_without_a_record_are_no_obstacle(offsets: Sequence[int]) -> None:
    back = search(Logs(log(0, offsets), ends=[1000]))

    assert places(back) == [(0, offset) for offset in reversed(offsets)]
    assert (back.stopped_by, back.next_offsets) == ("end", {0: 0})


def test_a_partition_with_old_records_waits_for_the_others() -> None:
    logs = Logs(log(0, range(1000)), log(1, range(100), every_ms=2))
    back = search(logs, found=900)

    times = [each.timestamp_ms or 0 for each in back.found]
    assert times == sorted(times, reverse=True)
    assert places(back)[:2] == [(0, 999), (0, 998)]
    assert back.stopped_by == "limit"
    assert sum(back.next_offsets.values()) == 1100 - 900


def test_what_was_seen_before_a_bound_was_reached_is_found() -> None:
    logs = Logs(log(0, range(1000)), log(1, range(100)))
    back = search(logs, records=64, only=[99])

    assert places(back) == [(1, 99)]
    assert (back.stopped_by, back.spent.records) == ("records", 64)


def test_the_bound_of_bytes_is_kept_and_going_on_gets_on() -> None:
    small, large = log(0, range(500, 1000)), log(0, range(500), size_bytes=10_000)
    logs = Logs([*large, *small])
    found: list[tuple[int, int]] = []
    while True:
        back = search(logs, size_bytes=1_000_000)
        found += places(back)
        assert back.spent.size_bytes <= 1_000_000 + 64 * 10_000
        if back.stopped_by == "end":
            break
        assert back.stopped_by == "bytes"
        assert back.next_offsets[0] < logs.positions[0]
        logs.positions = dict(back.next_offsets)

    assert found == [(0, offset) for offset in reversed(range(1000))]


def test_all_partitions_are_read_though_there_are_more_than_a_window_has_records() -> None:
    logs = Logs(*[log(index, range(3)) for index in range(200)])
    back = search(logs, found=50)

    assert {each.offset for each in back.found} == {2}
    assert back.spent.records == 600  # a second window for all of them at once, not one by one


def test_of_what_is_found_only_what_is_made_of_it_is_kept() -> None:
    """Records may be large: a search that held on to them would have all of its bytes in memory."""
    bounds = Bounds(found=100, records=LARGE, size_bytes=LARGE, time_s=60)
    back = Backwards(
        cast("Follower", Logs(log(0, range(100), size_bytes=1000))),
        LARGE,
        lambda records: [True] * len(records),
        bounds,
        time.monotonic() + bounds.time_s,
        keep=lambda record: (record.value or b"")[:1],
    )
    back.run()

    assert back.found == [b"x"] * 100


def test_a_search_ends_when_what_is_made_of_its_records_is_enough() -> None:
    kept: list[bytes] = []
    bounds = Bounds(found=100, records=LARGE, size_bytes=LARGE, time_s=60)
    back = Backwards(
        cast("Follower", Logs(log(0, range(100), size_bytes=1000))),
        LARGE,
        lambda records: [True] * len(records),
        bounds,
        time.monotonic() + bounds.time_s,
        keep=lambda record: kept.append(record.value or b""),
        is_full=lambda: sum(map(len, kept)) >= 3000,
    )
    back.run()

    assert len(back.found) == 3
    assert back.stopped_by == "bytes"
    assert back.next_offsets == {0: 97}  # where it goes on
