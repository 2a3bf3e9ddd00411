"""Full garbage collections of a broker traverse what is new."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from headrace.cli.support import process
from support.clock import SettableClock


class Node:
    """A part of a reference cycle."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def clock() -> Iterator[SettableClock]:
    thresholds = gc.get_threshold()
    clock = SettableClock()
    process.exempt_from_collections(lambda: clock() / 1000)
    yield clock
    gc.callbacks.pop()
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_what_survives_a_full_collection_is_not_traversed_again() -> None:
    gc.collect()
    kept = [Node() for _ in range(1000)]
    before = gc.get_freeze_count()
    gc.collect()

    assert gc.get_freeze_count() >= before + len(kept)


def test_cycles_among_exempted_objects_are_freed_by_a_complete_collection(clock: SettableClock) -> None:
    node = Node()
    gc.collect()
    gone = weakref.ref(node)
    del node
    gc.collect()
    assert gone() is not None

    for _ in range(2 * process.COMPLETE_EVERY):
        gc.collect()
    assert gone() is not None  # complete collections come once a minute at most
    clock.now_ms += int(process.COMPLETE_AFTER_S * 1000)
    gc.collect()

    assert gone() is None


def test_new_cycles_are_freed_at_once() -> None:
    gone = weakref.ref(Node())
    gc.collect()

    assert gone() is None
