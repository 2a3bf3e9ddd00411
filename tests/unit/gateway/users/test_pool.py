"""The clients of users who have authenticated lately."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from headrace.client.errors import AuthenticationFailed, Unreachable
from headrace.client.wire.security import PLAINTEXT, Security
from headrace.gateway.clients import Clients
from headrace.gateway.problems import Problem
from headrace.gateway.users import pool as module
from headrace.gateway.users.credentials import Credentials, Password
from headrace.gateway.users.logins import VERIFIED_S, BrokerLogin, LoginEnded
from headrace.gateway.users.pool import UserPool

ALICE, BOB = Password("alice", "wonderland"), Password("bob", "builder")


@dataclass
class FakeHub:
    is_busy: bool = False


@dataclass
class FakeClients:
    hub: FakeHub = field(default_factory=FakeHub)
    closed: bool = False
    ended: bool = False

    def end_streams(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.closed = True


class FakeLogin(BrokerLogin):
    """A login that brokers accept for as long as its credentials are accepted, or until it has expired."""

    def __init__(self, world: "World", credentials: Credentials) -> None:
        super().__init__(PLAINTEXT, cast("Any", None))
        self.valid_s = VERIFIED_S
        self.expired = self.ended = False
        self._world = world
        self._credentials = credentials

    @property
    def verified_for_s(self) -> float:
        return self.valid_s

    def verify(self) -> None:
        self._world.ask(self._credentials)
        if self.expired:
            raise LoginEnded

    def end(self) -> None:
        self.ended = True


class World:
    """A cluster that accepts some passwords, a clock, and the clients that were made."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.asked: list[Credentials] = []
        self.accepted = {ALICE, BOB}
        self.reachable = True
        self.made: list[FakeClients] = []
        self.logins: list[FakeLogin] = []
        self.pool = UserPool(self._accept, self._make, now_s=lambda: self.now_s)

    def ask(self, credentials: Credentials) -> None:
        self.asked.append(credentials)
        if not self.reachable:
            raise Unreachable("no broker answers")
        if credentials not in self.accepted:
            raise AuthenticationFailed("refused")

    def _accept(self, credentials: Credentials) -> BrokerLogin:
        self.ask(credentials)
        self.logins.append(FakeLogin(self, credentials))
        return self.logins[-1]

    def _make(self, _security: Security) -> Clients:
        self.made.append(FakeClients())
        return cast("Clients", self.made[-1])

    async def use(self, credentials: Credentials) -> Clients:
        async with self.pool.clients(credentials) as clients:
            return clients

    def run(self, story: Coroutine[Any, Any, None]) -> None:
        async def whole() -> None:
            await story
            await self.pool.close()

        asyncio.run(whole())


def test_a_user_is_verified_once_and_again_after_a_minute() -> None:
    world = World()

    async def story() -> None:
        first = await world.use(ALICE)
        world.now_s = VERIFIED_S - 1
        assert await world.use(ALICE) is first
        assert world.pool.is_known(ALICE)
        assert len(world.asked) == 1
        world.now_s = VERIFIED_S + 1
        assert not world.pool.is_known(ALICE)
        assert await world.use(ALICE) is first
        assert len(world.asked) == 2

    world.run(story())
    assert world.made[0].closed


def test_requests_that_come_together_cost_one_verification() -> None:
    world = World()

    async def story() -> None:
        found = await asyncio.gather(*(world.use(ALICE) for _ in range(10)))
        assert len(set(map(id, found))) == 1
        world.now_s = VERIFIED_S + 1
        await asyncio.gather(*(world.use(ALICE) for _ in range(10)))

    world.run(story())
    assert len(world.asked) == 2


def test_a_changed_password_ends_everything_of_the_old_one() -> None:
    world = World()

    async def story() -> None:
        await world.use(ALICE)
        world.accepted = {BOB}
        world.now_s = VERIFIED_S + 1
        with pytest.raises(AuthenticationFailed):
            await world.use(ALICE)
        assert len(world.pool) == 0
        assert world.made[0].ended

    world.run(story())
    assert world.made[0].closed


def test_a_login_that_has_ended_is_replaced_with_new_clients() -> None:
    world = World()

    async def story() -> None:
        first = await world.use(ALICE)
        world.logins[0].expired, world.now_s = True, VERIFIED_S + 1
        found = await asyncio.gather(*(world.use(ALICE) for _ in range(10)))
        assert len(set(map(id, found))) == 1
        assert found[0] is not first
        assert world.made[0].ended

    world.run(story())
    assert [each.ended for each in world.logins] == [True, True]
    assert [each.closed for each in world.made] == [True, True]


def test_a_login_is_verified_when_it_says_so() -> None:
    world = World()

    async def story() -> None:
        await world.use(ALICE)
        world.logins[0].valid_s, world.now_s = 5.0, VERIFIED_S + 1
        await world.use(ALICE)
        world.now_s += 6
        await world.use(ALICE)
        assert len(world.asked) == 3

    world.run(story())


def test_a_doubt_asks_brokers_at_the_next_request() -> None:
    world = World()

    async def story() -> None:
        await world.use(ALICE)
        world.accepted = set()
        world.pool.doubt(ALICE)
        with pytest.raises(AuthenticationFailed):
            await world.use(ALICE)

    world.run(story())


def test_wrong_credentials_leave_nothing_behind() -> None:
    world = World()

    async def story() -> None:
        with pytest.raises(AuthenticationFailed):
            await world.use(Password("alice", "wrong"))
        assert len(world.pool) == 0

    world.run(story())
    assert not world.made


def test_a_known_user_is_not_refused_because_no_broker_answers() -> None:
    world = World()

    async def story() -> None:
        first = await world.use(ALICE)
        world.reachable, world.now_s = False, VERIFIED_S + 1
        assert await world.use(ALICE) is first
        with pytest.raises(Unreachable):
            await world.use(BOB)

    world.run(story())


def test_there_is_room_for_so_many_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_USERS", 1)
    world = World()

    async def story() -> None:
        await world.use(ALICE)
        await world.use(BOB)  # instead of alice, who is idle
        assert world.made[0].ended
        world.made[1].hub.is_busy = True
        with pytest.raises(Problem, match="the most at a time"):
            await world.use(ALICE)
        assert len(world.logins) == 3  # alice's second one ends without clients
        world.made[1].hub.is_busy = False
        async with world.pool.clients(BOB):
            with pytest.raises(Problem, match="the most at a time"):
                await world.use(ALICE)

    world.run(story())
    assert all(each.ended for each in world.logins)


def test_idle_users_are_forgotten_and_busy_ones_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SWEEP_S", 0.001)
    world = World()

    async def gone(count: int) -> None:
        while len(world.pool) > count:  # noqa: ASYNC110  the pool has no event for it
            await asyncio.sleep(0.001)

    async def story() -> None:
        await world.use(ALICE)
        await world.use(BOB)
        world.made[1].hub.is_busy = True
        world.now_s = module.IDLE_S + 1
        await gone(1)
        assert world.made[0].ended
        assert not world.made[1].ended
        world.accepted = set()
        world.now_s += VERIFIED_S + 1
        await gone(0)
        assert world.made[1].ended

    world.run(story())
