"""Iterators in threads: everything arrives, and the first error ends all of them."""

import threading
from collections.abc import Iterator

import pytest

from headrace.tables.arrow.parallel import in_parallel, in_threads


def numbers(count: int, error: Exception | None = None) -> Iterator[int]:
    yield from range(count)
    if error is not None:
        raise error


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_all_items_arrive_and_those_of_one_iterator_in_order(threads: int) -> None:
    works = [lambda base=base: ((base, each) for each in range(50)) for base in range(5)]

    found = list(in_parallel(works, threads))

    assert sorted(found) == [(base, each) for base in range(5) for each in range(50)]
    for base in range(5):
        assert [each for owner, each in found if owner == base] == list(range(50))


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_is_raised(threads: int) -> None:
    works = [lambda: numbers(3), lambda: numbers(2, ValueError("broken")), lambda: numbers(3)]

    with pytest.raises(ValueError, match="broken"):
        list(in_parallel(works, threads))


def test_threads_end_when_the_consumer_does() -> None:
    ended = threading.Semaphore(0)

    def endless() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            ended.release()

    found = in_threads([endless, endless], 2)
    assert next(found) == 1
    found.close()  # type: ignore[attr-defined]

    assert ended.acquire(timeout=20)
    assert ended.acquire(timeout=20)


def test_nothing_to_do_is_done_at_once() -> None:
    assert list(in_parallel([], 4)) == []
