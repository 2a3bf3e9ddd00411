"""The kinds of resources that have settings, by the numbers of the protocol, and where those are kept."""

from enum import IntEnum
from typing import Final


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


ZNODES: Final = {
    ResourceType.TOPIC: "topics",
    ResourceType.BROKER: "brokers",
    ResourceType.CLIENT_METRICS: "client-metrics",
    ResourceType.GROUP: "groups",
}
"""The directory of a resource's settings below /config in ZooKeeper."""
ALL_BROKERS: Final = "<default>"  # the znode of the settings that all brokers share
