"""Where a broker is: its rack, and its node, the machine that it may share with other brokers. Pure."""

from collections.abc import Mapping
from typing import NamedTuple


class Location(NamedTuple):
    """The rack and the node of a broker, None if it has no name for them."""

    rack: str | None = None
    node: str | None = None


Locations = Mapping[int, Location]
"""Brokers, each with its location."""


def node_of(broker_id: int, locations: Locations) -> str | int:
    """Return what identifies the node of a broker: a broker without a name for it is a node of its own."""
    location = locations.get(broker_id)
    return broker_id if location is None or not location.node else location.node


def nodes(locations: Locations) -> dict[str | int, list[int]]:
    """Return the brokers of each node in the order of their ids; nodes are ordered by their first broker."""
    found: dict[str | int, list[int]] = {}
    for broker_id in sorted(locations):
        found.setdefault(node_of(broker_id, locations), []).append(broker_id)
    return found
