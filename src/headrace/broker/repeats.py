"""Names that a request repeats. Kafka answers each, which is much work for few bytes if they are many."""

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Final, TypeVar

MAX_REPEATS: Final = 100  # in one request, that are answered as often as they are named

T = TypeVar("T")


def bounded_repeats(items: Collection[T], key: Callable[[T], Hashable] = lambda item: item) -> Iterable[T]:
    """Return the items as they are, or each of them once if there are too many repetitions."""
    once = {key(item): item for item in items}
    return items if len(items) - len(once) <= MAX_REPEATS else once.values()
