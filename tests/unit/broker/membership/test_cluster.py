"""A broker's view of the registered brokers, while several of its parts read it."""

import asyncio

from headrace.broker.membership.cluster import ClusterView
from headrace.coordination.session import Watcher, Znode
from headrace.coordination.znodes import BrokerRegistration
from headrace.security.listeners import Endpoint
from unit.broker.fake_session import FakeSession, FakeZooKeeper


class SlowSession(FakeSession):
    """A session whose reads of znodes wait for `answers`."""

    def __init__(self, zookeeper: FakeZooKeeper) -> None:
        super().__init__(zookeeper)
        self.answers = asyncio.Event()

    async def get(self, path: str, watch: Watcher | None = None) -> Znode | None:
        await self.answers.wait()
        return await super().get(path, watch)


def test_brokers_that_another_call_is_reading_are_waited_for() -> None:
    """Otherwise a new controller takes them for dead, itself among them, and replaces leaders that serve."""

    async def story() -> None:
        session = SlowSession(FakeZooKeeper())
        registration = BrokerRegistration(
            broker_id=2, endpoints=[Endpoint("PLAINTEXT", "here", 9092)], timestamp_ms=7
        )
        await session.create(registration.path, registration.encode(), ephemeral=True)
        view = ClusterView(session.real, lambda _kind, _name, _values: None)

        reading = asyncio.create_task(view.load_brokers(again=True))
        await asyncio.sleep(0)
        again = asyncio.create_task(view.load_brokers())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not again.done()

        session.answers.set()
        await again
        assert view.brokers.registrations.keys() == {2}
        await reading

    asyncio.run(story())
