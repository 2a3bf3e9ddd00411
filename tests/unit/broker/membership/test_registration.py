"""A broker's registration in ZooKeeper: made, renewed, lost and made again."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from headrace.broker.membership.lease import Lease
from headrace.broker.membership.registration import Registration
from headrace.coordination.session import SessionState
from headrace.coordination.znodes import BrokerRegistration
from headrace.protocol.ids import TopicPartition
from headrace.security.listeners import Endpoint
from headrace.storage.checks.losses import Losses
from unit.broker.fake_session import FakeSession, FakeZooKeeper

HERE = 1
PATH = BrokerRegistration.path_of(HERE)


class Setup:
    def __init__(self) -> None:
        zookeeper = FakeZooKeeper()
        self.tree = zookeeper.tree
        self.session = FakeSession(zookeeper)
        self.lease = Lease()
        self.events: list[str] = []
        self.is_registered = asyncio.Event()
        self.written: list[bytes] = []  # to headrace.boot
        self.losses = Losses(None, boot="1", identity=5, clean=False, write=self.written.append)
        self.registration = Registration(
            self.session.real,
            self.lease,
            BrokerRegistration(
                broker_id=HERE,
                endpoints=(Endpoint("PLAINTEXT", "here", 9092),),
                timestamp_ms=0,
                rack="r1",
                node="n1",
            ),
            losses=self.losses,
            now_ms=lambda: 7,
            on_registered=self._registered,
            on_reconnected=lambda: self.events.append("reconnected"),
            on_lost=lambda: self.events.append("lost"),
        )

    async def _registered(self) -> None:
        self.events.append("registered")
        self.is_registered.set()

    def registered(self) -> BrokerRegistration:
        found = self.tree.get(PATH)
        assert found is not None
        return BrokerRegistration.decode(HERE, found.data)

    def lose_session(self) -> None:
        """End the session, and begin another one."""
        self.is_registered.clear()
        self.session.expire()


def run(story: Callable[[Setup], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        setup = Setup()
        await setup.registration.join()
        await story(setup)
        setup.registration.stop()

    asyncio.run(play())


def test_a_broker_registers_its_endpoints_and_whether_it_may_have_lost_records() -> None:
    async def story(setup: Setup) -> None:
        found = setup.registered()
        assert [endpoint.address for endpoint in found.endpoints] == ["here:9092"]
        assert (found.rack, found.node, found.may_have_lost) == ("r1", "n1", True)
        assert setup.registration.is_current
        assert setup.events == ["registered"]

    run(story)


def test_the_broker_epoch_is_the_zxid_of_the_registration() -> None:
    async def story(setup: Setup) -> None:
        found = setup.tree.get(PATH)
        assert found is not None
        assert setup.lease.broker_epoch == found.created_zxid

    run(story)


def test_a_lost_session_revokes_the_lease_and_the_broker_registers_again_in_a_new_epoch() -> None:
    async def story(setup: Setup) -> None:
        before = setup.lease.broker_epoch
        setup.losses.confirmed()

        setup.lose_session()
        assert not setup.lease.is_held
        assert not setup.registration.is_current
        await setup.is_registered.wait()

        assert setup.events == ["registered", "lost", "registered"]
        assert setup.lease.broker_epoch > before
        assert not setup.registered().may_have_lost
        assert setup.registration.is_current

    run(story)


def test_a_session_that_was_only_disconnected_keeps_the_registration() -> None:
    async def story(setup: Setup) -> None:
        before = setup.lease.broker_epoch

        setup.session.tell(SessionState.CONNECTED)

        assert setup.events == ["registered", "reconnected"]
        assert setup.lease.broker_epoch == before

    run(story)


def test_a_registration_whose_answer_was_lost_is_recognized_as_its_own() -> None:
    async def story(setup: Setup) -> None:
        before = setup.lease.broker_epoch

        await setup.registration._register()

        assert setup.lease.broker_epoch == before

    run(story)


def test_a_broker_that_ends_while_it_registers_has_no_older_directory() -> None:
    """What it writes before it registers is what ZooKeeper counts afterwards."""

    async def story(setup: Setup) -> None:
        first = setup.written[-1]
        setup.lose_session()
        await setup.is_registered.wait()
        assert json.loads(first)["registrations"] == 1
        assert [json.loads(content)["registrations"] for content in setup.written][-1] == 2
        assert len(setup.written) == len({*setup.written}), "nothing is written twice"

    run(story)


def test_a_broker_says_which_partitions_have_lost_records() -> None:
    async def story(setup: Setup) -> None:
        setup.losses.confirmed()
        setup.losses.add([TopicPartition("orders", 0)])
        setup.lose_session()
        await setup.is_registered.wait()
        found = setup.registered()
        assert (found.may_have_lost, found.lost) == (False, {TopicPartition("orders", 0)})

    run(story)


def test_a_stopping_broker_whose_session_is_lost_does_not_register_again() -> None:
    async def story(setup: Setup) -> None:
        setup.registration.leave()

        setup.lose_session()
        for _ in range(20):
            await asyncio.sleep(0)

        assert setup.events == ["registered", "lost"]
        assert setup.tree.get(PATH) is None

    run(story)
