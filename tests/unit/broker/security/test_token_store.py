"""Delegation tokens in ZooKeeper: every broker has the same ones."""

import asyncio

import pytest

from headrace.broker.security.token_store import TokenStore
from headrace.coordination.session import NotConnected
from headrace.security.delegation_tokens import DelegationToken, TokenNotFound, TokenRules
from headrace.security.principals import Principal
from headrace.security.sasl.exchange import SCRAM_SHA_256
from unit.broker.fake_session import FakeSession, FakeZooKeeper

ALICE = Principal("alice")
NOW_MS = 1_000_000


class Broker:
    """A store, and what it has to read again."""

    def __init__(self, zookeeper: FakeZooKeeper) -> None:
        self.session = FakeSession(zookeeper)
        self.now_ms = NOW_MS
        self.dirty: set[str] = set()
        self.store = TokenStore(
            self.session.real, b"secret", now_ms=lambda: self.now_ms, changed=self.dirty.add
        )

    async def catch_up(self) -> None:
        while self.dirty:
            await self.store.loaders[self.dirty.pop()]()

    def knows(self, token: DelegationToken) -> bool:
        return self.store.account(SCRAM_SHA_256, token.token_id) is not None


async def brokers() -> tuple[Broker, Broker]:
    zookeeper = FakeZooKeeper()
    one, other = Broker(zookeeper), Broker(zookeeper)
    await one.store.load()
    await other.store.load()
    return one, other


def new_token() -> DelegationToken:
    return TokenRules(1000, 100).create(ALICE, ALICE, [], -1, NOW_MS)


def test_a_token_is_valid_everywhere_until_it_expires_or_is_deleted() -> None:
    async def story() -> None:
        one, other = await brokers()
        token = new_token()
        await one.store.put(token)
        await other.catch_up()
        assert one.knows(token)
        assert other.knows(token)
        assert other.store.find(other.store.hmac(token)) == token

        other.now_ms = token.expiry_ms + 1
        assert not other.knows(token)
        await other.store.delete_expired()
        await one.catch_up()
        assert not one.knows(token)
        assert list(one.store) == []
        with pytest.raises(TokenNotFound):
            one.store.find(one.store.hmac(token))

    asyncio.run(story())


def test_a_deletion_that_other_brokers_were_not_told_of_is_repeated() -> None:
    async def story() -> None:
        one, other = await brokers()
        token = new_token()
        await one.store.put(token)
        await other.catch_up()
        one.session.notifies_nobody = True
        with pytest.raises(NotConnected):
            await one.store.delete(token.token_id)
        assert one.store.find(one.store.hmac(token)) == token

        one.session.notifies_nobody = False
        await one.store.delete(token.token_id)
        await other.catch_up()
        assert not one.knows(token)
        assert not other.knows(token)

    asyncio.run(story())
