"""How fast a compaction may read and write."""

import pytest

from headrace.storage.compaction.cleaner import Throttle


class Time:
    """A clock that its own sleeps move, each by a little more than asked for."""

    def __init__(self, late: float = 0) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self._late = late

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds + (self._late if seconds else 0)


def throttle_at(rate: float, time: Time) -> Throttle:
    return Throttle(rate, clock=time.clock, sleep=time.sleep)


@pytest.mark.parametrize("size", [1, 100, 5_000, 1_000_000])
def test_work_takes_as_long_as_its_bytes_at_the_rate(size: int) -> None:
    time = Time()
    throttle = throttle_at(1_000_000, time)
    for _ in range(2_000_000 // size):
        throttle.spend(size)

    assert time.now - 1000 == pytest.approx(2, abs=0.006)


def test_small_pieces_are_slept_off_together() -> None:
    time = Time()
    throttle = throttle_at(1_000_000, time)
    for _ in range(100):
        throttle.spend(1000)

    assert [seconds for seconds in time.slept if seconds] == [pytest.approx(0.006)] * 16


def test_every_piece_lets_other_threads_run() -> None:
    time = Time()
    throttle = throttle_at(1_000_000, time)
    for _ in range(10):
        throttle.spend(1)

    assert time.slept == [0] * 10


def test_work_that_is_slow_by_itself_is_not_slowed_down() -> None:
    time = Time()
    throttle = throttle_at(1_000_000, time)
    for _ in range(10):
        time.now += 0.01
        throttle.spend(9_000)

    assert time.slept == [0] * 10


def test_the_time_that_work_takes_counts() -> None:
    """Half the rate's time for the work, half for sleeping."""
    time = Time()
    throttle = throttle_at(1_000_000, time)
    for _ in range(100):
        throttle.spend(20_000)
        time.now += 0.01

    assert time.now - 1000 == pytest.approx(2, abs=0.011)


def test_an_idle_hour_is_not_saved_up_for_a_burst() -> None:
    time = Time()
    throttle = throttle_at(1000, time)
    time.now += 3600
    start = time.now
    for _ in range(5):
        throttle.spend(1000)

    assert time.now - start == pytest.approx(5, abs=0.101)


def test_sleeps_that_take_too_long_are_made_up_for() -> None:
    time = Time(late=0.001)
    throttle = throttle_at(1_000_000, time)
    for _ in range(1000):
        throttle.spend(1000)

    assert time.now - 1000 == pytest.approx(1, abs=0.006)
