"""Change notifications of configs are removed after 15 minutes; the newest one stays."""

import asyncio
from typing import cast

from headrace.coordination.session import Conflict, Znode, ZooKeeperSession
from headrace.coordination.znodes import CONFIG_CHANGES
from headrace.replication.controller.transactions import CHANGE_RETENTION_MS, remove_old_changes

NOW_MS = 10 * CHANGE_RETENTION_MS


class Notifications:
    """The znodes below /config/changes, by their number, with the time of their creation."""

    def __init__(self, created_ms: dict[int, int]) -> None:
        self.created_ms = created_ms
        self.removed_by_others: set[int] = set()
        self.reads = 0

    async def children(self, path: str) -> list[str]:
        assert path == CONFIG_CHANGES
        return [f"config_change_{number:010}" for number in self.created_ms]

    async def get(self, path: str) -> Znode | None:
        self.reads += 1
        return Znode(b"", 0, 0, created_ms=self.created_ms[_number(path)])

    async def delete(self, path: str) -> None:
        del self.created_ms[_number(path)]
        if _number(path) in self.removed_by_others:
            raise Conflict("NoNodeError", path)

    def remove_old(self) -> list[int]:
        asyncio.run(remove_old_changes(cast("ZooKeeperSession", self), CONFIG_CHANGES, NOW_MS))
        return sorted(self.created_ms)


def _number(path: str) -> int:
    return int(path.rpartition("_")[2])


def minutes_ago(minutes: int) -> int:
    return NOW_MS - minutes * 60_000


def test_notifications_older_than_fifteen_minutes_are_removed() -> None:
    found = Notifications({7: minutes_ago(40), 8: minutes_ago(16), 9: minutes_ago(14), 10: minutes_ago(0)})

    assert found.remove_old() == [9, 10]


def test_the_newest_stays_however_old_it_is() -> None:
    """A broker that comes back sees by its number whether it has missed others."""
    assert Notifications({7: minutes_ago(40), 8: minutes_ago(30)}).remove_old() == [8]
    assert Notifications({}).remove_old() == []


def test_no_more_are_read_than_removed_and_one() -> None:
    found = Notifications({number: minutes_ago(0) for number in range(100)})

    assert len(found.remove_old()) == 100
    assert found.reads == 1


def test_another_broker_may_remove_the_same() -> None:
    found = Notifications({7: minutes_ago(40), 8: minutes_ago(30), 9: minutes_ago(0)})
    found.removed_by_others = {7}

    assert found.remove_old() == [9]
