"""Elections of the controller: the first broker that creates /controller, until it resigns or is replaced."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from headrace.broker.membership.cluster import ClusterView
from headrace.broker.membership.controller_election import ControllerElection
from headrace.coordination import znodes
from headrace.coordination.session import NotConnected
from headrace.coordination.znodes import BrokerRegistration, ControllerEpoch
from headrace.protocol.kafka_errors import NotController
from headrace.protocol.peers import Link, PeerGone
from headrace.replication.controller.model import TopicRules
from headrace.replication.controller.runner import Controller
from headrace.security.listeners import Endpoint
from unit.broker.fake_session import FakeSession, FakeZooKeeper


class Candidate:
    """A broker as far as an election needs one: a registration, a view of the cluster, and a session."""

    def __init__(self, zookeeper: FakeZooKeeper, broker_id: int) -> None:
        self.broker_id = broker_id
        self.session = FakeSession(zookeeper)
        self.is_registered = True
        self.events: list[str] = []
        self.changed = asyncio.Event()
        self.view = ClusterView(self.session.real, lambda _kind, _name, _values: None)
        self.election = ControllerElection(
            self.session.real,
            self.view,
            broker_id=broker_id,
            is_registered=lambda: self.is_registered,
            rules=lambda _configs: TopicRules(1, unclean_allowed=False),
            connect=self._connect,
            now_ms=lambda: 7,
            on_elected=self._elected,
            on_brokers=self._brokers,
            in_doubt_wait_s=lambda: 60.0,
        )
        self.view.on_brokers.append(self.election.brokers_changed)
        self.view.on_controller.append(self.election.controller_changed)

    async def join(self) -> None:
        await self.register(self.broker_id)
        await self.view.load()

    async def register(self, broker_id: int) -> None:
        registration = BrokerRegistration(
            broker_id=broker_id, endpoints=[Endpoint("PLAINTEXT", "here", 9092)], timestamp_ms=7
        )
        await self.session.create(registration.path, registration.encode(), ephemeral=True)

    async def until(self, event: str) -> None:
        while event not in self.events:
            self.changed.clear()
            await self.changed.wait()

    @property
    def controller(self) -> Controller:
        assert self.election.controller is not None
        return self.election.controller

    def stop(self) -> None:
        self.election.resign(logging.INFO)
        self.view.close()

    async def _connect(self, broker_id: int, _registration: BrokerRegistration) -> Link:
        raise PeerGone(f"broker {broker_id} has no network")

    async def _elected(self) -> None:
        self._note("elected")

    async def _brokers(self, controller: Controller) -> None:
        self._note(f"brokers {sorted(controller.model.members)}")

    def _note(self, event: str) -> None:
        self.events.append(event)
        self.changed.set()


class Setup:
    def __init__(self) -> None:
        self.zookeeper = FakeZooKeeper()
        self.candidates: list[Candidate] = []

    def candidate(self, broker_id: int) -> Candidate:
        self.candidates.append(Candidate(self.zookeeper, broker_id))
        return self.candidates[-1]

    def holder(self) -> int | None:
        found = self.zookeeper.tree.get(znodes.Controller.path)
        return None if found is None else znodes.Controller.decode(found.data).broker_id

    def epoch(self) -> int:
        found = self.zookeeper.tree.get(ControllerEpoch.path)
        assert found is not None
        return ControllerEpoch.decode(found.data).epoch


def run(story: Callable[[Setup], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        setup = Setup()
        try:
            await story(setup)
        finally:
            for each in setup.candidates:
                each.stop()

    asyncio.run(play())


def test_the_first_broker_is_elected_and_the_second_is_not() -> None:
    async def story(setup: Setup) -> None:
        first, second = setup.candidate(1), setup.candidate(2)
        await first.join()
        await second.join()

        assert (setup.holder(), setup.epoch()) == (1, 1)
        assert first.controller.epoch == 1
        assert first.events[0] == "elected"
        assert (second.election.controller, second.events) == (None, [])

    run(story)


def test_the_controller_handles_brokers_that_register_later() -> None:
    async def story(setup: Setup) -> None:
        first, second = setup.candidate(1), setup.candidate(2)
        await first.join()
        await second.join()

        await first.until("brokers [1, 2]")
        assert sorted(first.controller.model.members) == [1, 2]

    run(story)


def test_a_broker_that_registers_while_the_controller_begins_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = Controller.begin

    async def story(setup: Setup) -> None:
        candidate = setup.candidate(1)

        async def begin_and_register(self: Controller, *brokers: Any) -> None:
            await begin(self, *brokers)
            await candidate.register(2)
            await candidate.view.load_brokers()

        monkeypatch.setattr(Controller, "begin", begin_and_register)
        await candidate.join()

        assert candidate.events == ["brokers [1, 2]", "elected"]

    run(story)


def test_when_the_session_of_the_controller_ends_another_broker_is_elected_in_the_next_epoch() -> None:
    async def story(setup: Setup) -> None:
        first, second = setup.candidate(1), setup.candidate(2)
        await first.join()
        await second.join()
        replaced = first.controller

        first.is_registered = False
        first.election.resign()
        first.session.expire()
        await second.until("elected")

        assert (setup.holder(), setup.epoch()) == (2, 2)
        assert (first.election.controller, second.controller.epoch) == (None, 2)
        assert replaced._resigned

    run(story)


def test_a_broker_that_is_not_registered_does_not_run() -> None:
    async def story(setup: Setup) -> None:
        candidate = setup.candidate(1)
        candidate.is_registered = False
        await candidate.join()
        assert setup.holder() is None

        candidate.is_registered = True
        await candidate.view.load()
        assert setup.holder() == 1

    run(story)


def test_a_controller_resigns_when_it_sees_another_one() -> None:
    async def story(setup: Setup) -> None:
        candidate = setup.candidate(1)
        await candidate.join()
        controller = candidate.controller

        await candidate.election.controller_changed(2)

        assert candidate.election.controller is None
        assert controller._resigned

    run(story)


def test_a_controller_that_resigns_by_itself_runs_again_while_it_is_still_elected() -> None:
    """Its session is the one that created /controller: the epoch stays, and a new Controller begins."""

    async def story(setup: Setup) -> None:
        candidate = setup.candidate(1)
        await candidate.join()
        resigned = candidate.controller
        candidate.events.clear()

        resigned.resign()
        assert candidate.election.controller is None
        await candidate.until("elected")

        assert candidate.controller is not resigned
        assert (setup.holder(), candidate.controller.epoch) == (1, 1)

    run(story)


def test_an_elected_controller_that_cannot_read_the_cluster_resigns_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("headrace.broker.membership.controller_election.LAST_RETRY_S", 0)
    begin = Controller.begin
    failures = [NotConnected("no connection to ZooKeeper")]

    async def fail_once(self: Controller, *brokers: Any) -> None:
        if failures:
            raise failures.pop()
        await begin(self, *brokers)

    monkeypatch.setattr(Controller, "begin", fail_once)

    async def story(setup: Setup) -> None:
        candidate = setup.candidate(1)
        await candidate.join()
        assert candidate.election.controller is None

        await candidate.until("elected")
        assert candidate.controller.epoch == 1

    run(story)
    assert "the elected controller could not start: no connection to ZooKeeper" in caplog.text


def test_a_controller_whose_session_ends_while_it_begins_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async def begin_without_session(self: Controller, *_brokers: Any) -> None:
        self._session.session_id += 1  # type: ignore[misc]  # a FakeSession

    monkeypatch.setattr(Controller, "begin", begin_without_session)

    async def story(setup: Setup) -> None:
        candidate = setup.candidate(1)
        await candidate.join()

        assert (candidate.election.controller, candidate.events) == (None, [])

    run(story)


def test_a_change_of_brokers_that_a_replaced_controller_cannot_write_is_left_to_the_next(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def refuse(_self: Controller, *_brokers: Any) -> None:
        raise NotController("controller epoch 1 is over")

    async def story(setup: Setup) -> None:
        candidate = setup.candidate(1)
        await candidate.join()
        monkeypatch.setattr(Controller, "brokers_changed", refuse)

        await candidate.view.load_brokers()

        assert candidate.events == ["elected"]

    run(story)
    assert "the next controller handles the change of brokers: controller epoch 1 is over" in caplog.text


def test_two_calls_at_once_run_only_once() -> None:
    async def story(setup: Setup) -> None:
        candidate = setup.candidate(1)
        await candidate.register(1)
        await candidate.view.load_brokers()

        await asyncio.gather(*(candidate.election.controller_changed(-1) for _ in range(3)))

        assert (candidate.events, setup.epoch()) == (["elected"], 1)

    run(story)


def test_a_broker_reads_only_registrations_that_are_new_or_have_changed() -> None:
    async def story(setup: Setup) -> None:
        candidate = setup.candidate(1)
        await candidate.join()
        for broker_id in (2, 3):
            await setup.candidate(broker_id).join()
        await candidate.view.load_brokers()
        read: list[str] = []
        get = candidate.session.get

        async def counted(path: str, watch: Any = None) -> Any:
            read.append(path)
            return await get(path, watch)

        candidate.session.get = counted  # type: ignore[method-assign]
        await candidate.view.load_brokers()
        assert read == []

        setup.candidates[1].session.expire()
        await setup.candidates[1].join()
        await candidate.view.load_brokers()
        assert set(read) == {BrokerRegistration.path_of(2)}

    run(story)
