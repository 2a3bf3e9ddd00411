"""A limit on the repetition of names in a request, since a small request could cause a large response."""

from collections.abc import Callable, Collection, Hashable
from typing import Final, TypeVar

from headrace.broker.slices import Steps, keyed

MAX_REPEATS: Final = (
    100  # in one request; up to this number, repeated names are answered repeatedly, as in Kafka
)

T = TypeVar("T")


def bounded_repeats(
    items: Collection[T], key: Callable[[T], Hashable] = lambda item: item
) -> Steps[Collection[T]]:
    """Return the items, or each item once if more than MAX_REPEATS are repetitions."""
    once = yield from keyed(key, items)
    return items if len(items) - len(once) <= MAX_REPEATS else once.values()
