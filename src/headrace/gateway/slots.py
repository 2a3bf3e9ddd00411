"""A bound that several owners share, such as the number of tails of all users of a gateway."""

from typing import Protocol
from weakref import WeakSet


class Owner(Protocol):
    """The part of one user."""

    @property
    def taken(self) -> int:
        """How many slots this user takes."""
        ...


class Slots:
    """Counts what all owners have open."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._owners: WeakSet[Owner] = WeakSet()

    def join(self, owner: Owner) -> None:
        self._owners.add(owner)

    @property
    def is_full(self) -> bool:
        return sum(each.taken for each in list(self._owners)) >= self._limit
