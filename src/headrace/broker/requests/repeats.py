"""Names and partitions that a request repeats, since a small request could cause a large response."""

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Final, TypeVar

from headrace.broker.slices import STEP, Steps, keyed
from headrace.protocol.ids import TopicPartition

MAX_REPEATS: Final = 100
"""In one request; up to this number, repeated names are answered repeatedly, as in Kafka."""

T = TypeVar("T")


def bounded_repeats(
    items: Collection[T], key: Callable[[T], Hashable] = lambda item: item
) -> Steps[Collection[T]]:
    """Return the items, or each item once if more than MAX_REPEATS are repetitions."""
    once = yield from keyed(key, items)
    return items if len(items) - len(once) <= MAX_REPEATS else once.values()


def partitions_once(
    topics: Iterable[tuple[str, Iterable[int]]],
    is_wanted: Callable[[TopicPartition], bool] = lambda _id: True,
) -> Steps[dict[TopicPartition, None]]:
    """Return each wanted partition of these topics once, in the order of the request."""
    partitions: dict[TopicPartition, None] = {}
    for name, indexes in topics:
        yield
        for number, index in enumerate(indexes):
            if not number % STEP:
                yield
            id_ = TopicPartition(name, index)
            if is_wanted(id_):
                partitions[id_] = None
    return partitions
