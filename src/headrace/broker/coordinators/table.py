"""The coordinators of a broker: one entry for each internal topic."""

from collections.abc import Iterator
from typing import Any

from headrace.broker.coordinators.groups import Groups
from headrace.broker.coordinators.runtime import CoordinatorHost, CoordinatorRuntime
from headrace.broker.coordinators.transactions import Transactions


class Coordinators:
    """Every coordinator by its name, for handlers, and all of them by iteration, for the broker."""

    def __init__(self, host: CoordinatorHost) -> None:
        self.groups = Groups(host)
        self.transactions = Transactions(host)
        self.by_topic: dict[str, CoordinatorRuntime[Any]] = {
            coordinator.topic.name: coordinator for coordinator in (self.groups, self.transactions)
        }

    def __iter__(self) -> Iterator[CoordinatorRuntime[Any]]:
        return iter(self.by_topic.values())
