"""A limit on the repetition of names in a request, since a small request could cause a large response."""

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Final, TypeVar

MAX_REPEATS: Final = (
    100  # in one request; up to this number, repeated names are answered repeatedly, as in Kafka
)

T = TypeVar("T")


def bounded_repeats(items: Collection[T], key: Callable[[T], Hashable] = lambda item: item) -> Iterable[T]:
    """Return the items, or each item once if more than MAX_REPEATS are repetitions."""
    once = {key(item): item for item in items}
    return items if len(items) - len(once) <= MAX_REPEATS else once.values()
