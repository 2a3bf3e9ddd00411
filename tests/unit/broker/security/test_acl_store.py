"""ACLs in ZooKeeper: every broker has the same ones, whoever changes them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from headrace.broker.security.acl_store import MAX_ENTRIES_BYTES, AclStore
from headrace.coordination.session import Delete, NotConnected
from headrace.protocol.kafka_errors import InvalidRequest
from headrace.security import acl_storage
from headrace.security.acl_index import AclIndex
from headrace.security.acl_storage import UnreadableAcls
from headrace.security.acls import AclEntry, PatternType, PermissionType, ResourcePattern
from headrace.security.authorization import Operation, ResourceType
from unit.broker.fake_session import FakeSession, FakeZooKeeper

ORDERS = ResourcePattern(ResourceType.TOPIC, "orders")
TEAM = ResourcePattern(ResourceType.GROUP, "team-", PatternType.PREFIXED)


def entry(user: str, permission: PermissionType = PermissionType.ALLOW) -> AclEntry:
    return AclEntry(f"User:{user}", "*", Operation.READ, permission)


class Broker:
    """A store, and what it has to read again."""

    def __init__(self, zookeeper: FakeZooKeeper) -> None:
        self.session = FakeSession(zookeeper)
        self.dirty: set[str] = set()
        self.store = AclStore(self.session.real, AclIndex(), now_ms=lambda: 0, changed=self.dirty.add)

    async def catch_up(self) -> None:
        while self.dirty:
            await self.store.loaders[self.dirty.pop()]()

    async def allow(self, pattern: ResourcePattern, *users: str) -> None:
        await self.store.change(pattern, lambda old: old | set(map(entry, users)))

    def users(self, pattern: ResourcePattern) -> list[str]:
        return sorted(each.principal for each in self.store.index.entries(pattern))


def play(story: Callable[[Broker, Broker], Coroutine[Any, Any, None]]) -> None:
    """Run a story about two brokers that have just started."""

    async def run() -> None:
        zookeeper = FakeZooKeeper()
        one, other = Broker(zookeeper), Broker(zookeeper)
        await one.store.load()
        await other.store.load()
        await story(one, other)

    asyncio.run(run())


@pytest.mark.parametrize("pattern", [ORDERS, TEAM])
def test_a_change_is_in_force_here_at_once_and_elsewhere_when_it_is_read(pattern: ResourcePattern) -> None:
    async def story(one: Broker, other: Broker) -> None:
        await one.allow(pattern, "alice")
        assert one.users(pattern) == ["User:alice"]
        await other.catch_up()
        assert other.users(pattern) == ["User:alice"]

        await other.store.change(pattern, lambda _old: frozenset())
        await one.catch_up()
        assert one.users(pattern) == other.users(pattern) == []
        assert await one.session.get(acl_storage.path(pattern)) is None

    play(story)


def test_brokers_that_change_a_pattern_at_the_same_time_lose_nothing() -> None:
    async def story(one: Broker, other: Broker) -> None:
        changes = (broker.allow(ORDERS, f"{number}") for number in range(5) for broker in (one, other))
        await asyncio.gather(*changes)
        await one.catch_up()
        await other.catch_up()

        assert one.users(ORDERS) == other.users(ORDERS) == [f"User:{number}" for number in range(5)]

    play(story)


def test_a_broker_that_has_missed_notifications_reads_everything() -> None:
    async def story(one: Broker, other: Broker) -> None:
        await one.allow(ORDERS, "alice")
        await other.catch_up()
        await one.store.change(ORDERS, lambda _old: frozenset())
        await one.allow(ResourcePattern(ResourceType.TOPIC, "people"), "bob")
        directory = acl_storage.ACL_CHANGES[PatternType.LITERAL]
        *old, _newest = sorted(await one.session.children(directory))
        await one.session.multi([Delete(f"{directory}/{name}") for name in old])  # brokers remove old ones

        await other.catch_up()

        assert other.users(ORDERS) == []
        assert other.users(ResourcePattern(ResourceType.TOPIC, "people")) == ["User:bob"]

    play(story)


def test_a_change_that_other_brokers_were_not_told_of_is_repeated() -> None:
    async def attempt(broker: Broker, entries: frozenset[AclEntry]) -> None:
        broker.session.notifies_nobody = True
        with pytest.raises(NotConnected):
            await broker.store.change(ORDERS, lambda _old: entries)
        broker.session.notifies_nobody = False
        await broker.store.change(ORDERS, lambda _old: entries)

    async def story(one: Broker, other: Broker) -> None:
        await attempt(one, frozenset([entry("alice")]))
        await other.catch_up()
        assert one.users(ORDERS) == other.users(ORDERS) == ["User:alice"]

        await attempt(one, frozenset())
        await other.catch_up()
        assert one.users(ORDERS) == other.users(ORDERS) == []

    play(story)


def test_acls_that_cannot_be_read_stop_a_start_and_leave_a_running_broker_as_it_is() -> None:
    async def story(one: Broker, other: Broker) -> None:
        await one.allow(ORDERS, "alice")
        await other.catch_up()
        await one.session.set(acl_storage.path(ORDERS), b"{}")
        await one.allow(TEAM, "bob")
        await other.catch_up()
        assert (other.users(ORDERS), other.users(TEAM)) == (["User:alice"], ["User:bob"])

        with pytest.raises(UnreadableAcls, match="LITERAL TOPIC 'orders'"):
            await other.store.load()

    play(story)


def test_a_pattern_cannot_have_more_acls_than_fit_into_a_znode() -> None:
    async def story(one: Broker, _other: Broker) -> None:
        many = [f"{number:0>1000}" for number in range(MAX_ENTRIES_BYTES // 1000)]
        with pytest.raises(InvalidRequest, match="the ACLs of a resource pattern have"):
            await one.allow(ORDERS, *many)
        assert one.users(ORDERS) == []

    play(story)
