"""Partitions, as requests and answers name them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(places: Iterable[Place]) -> Mapping[str, list[int]]:
    """The partitions of each topic, as requests want them."""
    found: dict[str, list[int]] = defaultdict(list)
    for place in places:
        found[place.topic].append(place.partition)
    return found
