"""The replicas of a broker: created, given their roles and deleted by the controller's UpdateMetadata."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.image import ClusterImage, TopicImage
from headrace.broker.meters import Meters
from headrace.broker.peers.peer import Peer
from headrace.broker.replicas.replicas import Replicas
from headrace.broker.settings.config import BrokerConfig
from headrace.protocol.batch import HEADER_SIZE
from headrace.protocol.between_brokers.update_metadata import (
    FULL,
    INCREMENTAL,
    TOPIC_IS_GONE,
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicConfig,
    UpdateMetadataTopicState,
)
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.peers import PeerGone
from headrace.replication.election import NO_LEADER
from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.identity import Identity
from support.records import make_batch
from unit.broker.replica_samples import ELSEWHERE, HERE, ID, REPLICAS, THERE, TOPIC_ID

BROKER_EPOCH = 41


class Listener:
    """Records what it is told."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def updated(self) -> None:
        self.events.append("updated")

    def topic_changed(self, topic: TopicImage, own: Mapping[str, str]) -> None:
        self.events.append(f"{topic.name} changed {dict(own)}")

    def topic_removed(self, name: str) -> None:
        self.events.append(f"{name} removed")


class Setup:
    """Replicas of broker 1, with logs in a directory and without other brokers."""

    def __init__(self, directory: Path) -> None:
        self.listener = Listener()
        self.image = ClusterImage("c")
        self.logs = LogDirectory.open(
            directory, Identity(HERE, "c"), config_of=lambda _topic: LogConfig(), now_ms=lambda: 0
        )
        config = BrokerConfig.of({"broker.id": str(HERE)})
        self.replicas = Replicas(
            HERE,
            self.image,
            Meters(),
            self.listener,
            config=lambda: config,
            logs=lambda: self.logs,
            broker_epoch=lambda: BROKER_EPOCH,
            connect_to=_nobody,
            ask_controller=_no_controller,
        )

    async def take(self, *topics: UpdateMetadataTopicState, **fields: Any) -> ErrorCode:
        live = [
            UpdateMetadataBroker(id=each, endpoints=[], rack=None, broker_epoch=each) for each in REPLICAS
        ]
        values = {"controller_id": THERE, "controller_epoch": 5, "type": INCREMENTAL} | fields
        values.setdefault("broker_epoch", BROKER_EPOCH)
        return await self.replicas.take(
            UpdateMetadataRequest(topic_states=topics, live_brokers=live, **values)
        )


async def _nobody(broker_id: int) -> Peer:
    raise PeerGone(f"broker {broker_id} does not exist")


async def _no_controller(request: Message, versions: range, *, timeout_s: float) -> Any:
    raise PeerGone(f"no controller in {timeout_s} s for {request!r} {versions}")


@pytest.fixture
def play(tmp_path: Path) -> "Play":
    """Return a function that runs a story on an event loop, and waits until deleted files are gone."""

    def run(story: Story) -> Setup:
        async def on_loop() -> Setup:
            setup = Setup(tmp_path)
            try:
                await story(setup)
                if setup.replicas._deletions._unlinking is not None:
                    await setup.replicas._deletions._unlinking
            finally:
                setup.replicas.stop()
                setup.logs.release()
            return setup

        return asyncio.run(on_loop())

    return run


Story = Callable[[Setup], Awaitable[None]]
Play = Callable[[Story], Setup]


def topic(
    leader: int = HERE,
    *,
    epoch: int = 0,
    replicas: tuple[int, ...] = REPLICAS,
    isr: tuple[int, ...] | None = None,
    topic_id: bytes = TOPIC_ID,
    configs: Mapping[str, str] | None = None,
    partitions: int = 1,
) -> UpdateMetadataTopicState:
    states = [
        UpdateMetadataPartitionState(
            partition_index=index,
            controller_epoch=5,
            leader=leader,
            leader_epoch=epoch,
            isr=replicas if isr is None else isr,
            zk_version=epoch,
            replicas=replicas,
            offline_replicas=[],
        )
        for index in range(partitions)
    ]
    own = [UpdateMetadataTopicConfig(name=name, value=value) for name, value in (configs or {}).items()]
    return UpdateMetadataTopicState(topic_name="t", topic_id=topic_id, partition_states=states, configs=own)


def test_a_replica_is_created_with_its_role_and_the_settings_of_its_topic(play: Play) -> None:
    async def story(setup: Setup) -> None:
        assert await setup.take(topic(configs={"min.insync.replicas": "2"})) == ErrorCode.NONE

        partition = setup.replicas.partitions[ID]
        assert partition.leadership is not None
        assert partition.min_insync_replicas == 2
        assert ID in setup.logs.logs

    assert play(story).listener.events == ["t changed {'min.insync.replicas': '2'}", "updated"]


def test_a_leader_becomes_a_follower_with_the_same_log(play: Play) -> None:
    async def story(setup: Setup) -> None:
        await setup.take(topic())
        before = setup.replicas.partitions[ID]

        await setup.take(topic(THERE, epoch=1))

        assert setup.replicas.partitions[ID] is before
        assert before.leadership is None
        assert before.leader == THERE

    play(story)


def test_a_partition_without_a_replica_here_has_no_log(play: Play) -> None:
    async def story(setup: Setup) -> None:
        await setup.take(topic(THERE, replicas=(THERE, ELSEWHERE)))

        assert setup.replicas.partitions == {}
        assert setup.logs.logs == {}
        assert "t" in setup.image.topics  # clients ask any broker for metadata

    play(story)


def test_a_replica_that_has_moved_away_is_deleted(play: Play) -> None:
    async def story(setup: Setup) -> None:
        await setup.take(topic())
        await setup.take(topic(THERE, epoch=1, replicas=(THERE, ELSEWHERE)))

        assert setup.replicas.partitions == {}
        assert setup.logs.logs == {}

    play(story)


@pytest.mark.parametrize("kind", [INCREMENTAL, FULL])
def test_a_late_update_does_not_bring_back_a_replica_that_has_moved_away(play: Play, kind: int) -> None:
    async def story(setup: Setup) -> None:
        await setup.take(topic())
        await setup.take(topic(THERE, epoch=2, replicas=(THERE, ELSEWHERE)))
        await setup.take(topic(HERE, epoch=1), type=kind)

        assert ID not in setup.replicas.partitions
        assert ID not in setup.logs.logs
        assert setup.image.topics["t"].states[0].leader == THERE
        assert setup.image.topics["t"].replicas[0] == (THERE, ELSEWHERE)

    play(story)


def test_a_topic_that_was_deleted_is_removed_with_its_logs(play: Play) -> None:
    async def story(setup: Setup) -> None:
        await setup.take(topic())
        await setup.take(topic(TOPIC_IS_GONE))

        assert setup.replicas.partitions == {}
        assert setup.image.topics == {}
        assert setup.logs.logs == {}

    assert "t removed" in play(story).listener.events


def test_no_directory_of_a_deleted_topic_is_left_when_the_update_is_acknowledged(
    play: Play, tmp_path: Path
) -> None:
    async def story(setup: Setup) -> None:
        await setup.take(topic(partitions=40))
        for log in setup.logs.logs.values():
            log.truncate_fully(1)  # creates its files
        assert (tmp_path / "t-39").exists()
        await setup.take(topic(TOPIC_IS_GONE))

        assert not any((tmp_path / f"t-{index}").exists() for index in range(40))
        assert setup.logs.logs == {}

    play(story)


def test_the_next_update_waits_until_the_directories_of_deleted_logs_are_renamed(
    play: Play, tmp_path: Path
) -> None:
    async def story(setup: Setup) -> None:
        await setup.take(topic())
        setup.logs.logs[ID].truncate_fully(1)
        go_on, rename = threading.Event(), setup.logs.rename_retired

        def rename_later(partitions: Iterable[TopicPartition]) -> None:
            assert go_on.wait(10)
            rename(partitions)

        setup.logs.rename_retired = rename_later  # type: ignore[method-assign]
        deleting = asyncio.create_task(setup.take(topic(TOPIC_IS_GONE)))
        while setup.replicas._deletions._renaming is None:  # noqa: ASYNC110  nothing tells when it is set
            await asyncio.sleep(0)
        deleting.cancel()  # the controller has disconnected
        creating = asyncio.create_task(setup.take(topic(topic_id=b"later".ljust(16))))
        for _ in range(10):
            await asyncio.sleep(0)
        assert setup.logs.logs == {}
        go_on.set()
        assert await creating == ErrorCode.NONE
        assert setup.logs.logs[ID].log_end_offset == 0
        assert not (tmp_path / str(ID)).exists()

    play(story)


def test_a_broker_that_registers_again_while_it_deletes_a_topic_is_not_updated(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.broker.slices.SLICE_S", 0.0)

    async def story(setup: Setup) -> None:
        await setup.take(topic())
        setup.listener.events.clear()
        deleting = asyncio.create_task(setup.take(topic(TOPIC_IS_GONE)))
        while "t removed" not in setup.listener.events:  # noqa: ASYNC110  nothing tells when it is
            await asyncio.sleep(0)
        assert setup.replicas.check_sender(6, BROKER_EPOCH) == ErrorCode.NONE
        assert await deleting == ErrorCode.STALE_CONTROLLER_EPOCH
        assert setup.listener.events == ["t removed"]
        assert setup.logs.logs == {}

    play(story)


def test_the_deletion_of_an_earlier_topic_of_the_same_name_changes_nothing(play: Play) -> None:
    async def story(setup: Setup) -> None:
        await setup.take(topic())
        await setup.take(topic(TOPIC_IS_GONE, topic_id=b"earlier".ljust(16)))

        assert ID in setup.replicas.partitions

    play(story)


def test_a_topic_that_was_created_again_begins_with_an_empty_log(play: Play) -> None:
    async def story(setup: Setup) -> None:
        await setup.take(topic())
        before = setup.replicas.partitions[ID]

        await setup.take(topic(topic_id=b"later".ljust(16)))

        assert setup.replicas.partitions[ID] is not before
        assert setup.replicas.partitions[ID].topic_id == b"later".ljust(16)

    play(story)


def test_a_full_update_deletes_the_logs_of_topics_that_it_does_not_name(play: Play) -> None:
    async def story(setup: Setup) -> None:
        setup.logs.create(TopicPartition("gone", 0), b"gone".ljust(16), LogConfig())

        await setup.take(topic(), type=FULL)

        assert set(setup.logs.logs) == {ID}

    play(story)


def test_a_former_controller_and_a_message_to_an_earlier_broker_epoch_are_refused(play: Play) -> None:
    async def story(setup: Setup) -> None:
        await setup.take(topic())

        assert await setup.take(topic(THERE, epoch=1), controller_epoch=4) == ErrorCode.STALE_CONTROLLER_EPOCH
        assert await setup.take(topic(THERE, epoch=1), broker_epoch=40) == ErrorCode.STALE_BROKER_EPOCH
        assert setup.replicas.partitions[ID].leader == HERE

    play(story)


def test_a_topic_with_many_partitions_is_visible_with_all_of_them_or_not_at_all(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.broker.slices.SLICE_S", 0.0)  # a pause at each step

    async def story(setup: Setup) -> None:
        updating = asyncio.create_task(setup.take(topic(partitions=1000)))
        seen = set()
        while not updating.done():
            seen.add((len(setup.replicas.partitions) > 0, "t" in setup.image.topics))
            await asyncio.sleep(0)
        assert seen == {(False, False), (True, False)}
        assert len(setup.image.topics["t"].replicas) == len(setup.replicas.partitions) == 1000

    play(story)


def test_updates_are_applied_one_after_the_other(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.broker.slices.SLICE_S", 0.0)

    async def story(setup: Setup) -> None:
        first = asyncio.create_task(setup.take(topic()))
        second = asyncio.create_task(setup.take(topic(TOPIC_IS_GONE), controller_epoch=6))
        third = asyncio.create_task(setup.take(topic(topic_id=b"later".ljust(16)), controller_epoch=6))
        assert {await first, await second, await third} == {ErrorCode.NONE}
        assert setup.replicas.partitions[ID].topic_id == b"later".ljust(16)

    play(story)


def test_an_update_ends_when_a_later_controller_sends_a_message(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.broker.slices.SLICE_S", 0.0)

    async def story(setup: Setup) -> None:
        updating = asyncio.create_task(setup.take(topic()))
        await asyncio.sleep(0)
        assert setup.replicas.check_sender(6, BROKER_EPOCH) == ErrorCode.NONE
        assert await updating == ErrorCode.STALE_CONTROLLER_EPOCH
        assert "t" not in setup.image.topics

    play(story)


def test_a_change_of_one_partition_leaves_the_states_of_the_others_as_they_are(play: Play) -> None:
    async def story(setup: Setup) -> None:
        await setup.take(topic(partitions=3))
        image = setup.image.topics["t"]
        first, _, last = image.states.values()
        changed = topic(THERE, epoch=1, partitions=3)
        changed.partition_states = [changed.partition_states[1]]  # type: ignore[misc]

        await setup.take(changed)

        assert setup.image.topics["t"] is image
        assert [state.leader for state in image.states.values()] == [HERE, THERE, HERE]
        assert (image.states[0], image.states[2]) == (first, last)

    play(story)


def test_partitions_that_are_added_to_a_topic_come_after_its_others(play: Play) -> None:
    async def story(setup: Setup) -> None:
        await setup.take(topic(partitions=2))
        more = topic(partitions=12)
        more.partition_states = list(reversed(more.partition_states[2:]))  # type: ignore[misc]
        await setup.take(more)

        assert list(setup.image.topics["t"].states) == list(setup.image.topics["t"].replicas) == [*range(12)]

    play(story)


def test_a_broker_that_registers_again_does_not_get_the_roles_of_its_last_registration(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.broker.slices.SLICE_S", 0.0)

    async def story(setup: Setup) -> None:
        await setup.take(topic(THERE, partitions=100))
        updating = asyncio.create_task(setup.take(topic(HERE, epoch=1, partitions=100)))
        while setup.image.topics["t"].states[0].leader != HERE:  # noqa: ASYNC110  there is no event
            await asyncio.sleep(0)
        setup.replicas._broker_epoch = lambda: BROKER_EPOCH + 1

        assert await updating == ErrorCode.STALE_BROKER_EPOCH
        assert setup.image.topics["t"].states[99].leader == THERE
        assert setup.replicas.partitions[TopicPartition("t", 99)].leadership is None

    play(story)


# -- the whole state in parts ------------------------------------------------------------------

OTHER = TopicPartition("gone", 0)


def test_the_last_part_of_the_state_deletes_the_logs_of_topics_that_no_part_has_named(play: Play) -> None:
    async def story(setup: Setup) -> None:
        setup.logs.create(OTHER, b"gone".ljust(16), LogConfig())

        assert await setup.take(topic(), part=0) == ErrorCode.NONE
        assert set(setup.logs.logs) == {ID, OTHER}
        assert "updated" not in setup.listener.events
        assert await setup.take(part=1, is_last_part=True) == ErrorCode.NONE
        assert set(setup.logs.logs) == {ID}

    assert play(story).listener.events[-1] == "updated"


def test_a_part_after_a_missing_one_is_refused(play: Play) -> None:
    async def story(setup: Setup) -> None:
        await setup.take(topic(), part=0)

        assert await setup.take(part=2, is_last_part=True) == ErrorCode.INVALID_REQUEST
        assert set(setup.logs.logs) == {ID}

    play(story)


def test_parts_that_begin_again_name_the_topics_again(play: Play) -> None:
    async def story(setup: Setup) -> None:
        await setup.take(topic(), part=0)
        await setup.take(part=0)
        await setup.take(part=1, is_last_part=True)

        assert setup.logs.logs == {}

    play(story)


def test_a_log_that_is_damaged_below_what_was_flushed_is_truncated_only_if_another_broker_leads(
    play: Play, tmp_path: Path
) -> None:
    async def write(setup: Setup) -> None:
        await setup.take(topic())
        log = setup.logs.logs[ID]
        for number in range(4):
            log.append(make_batch([b"%d" % number * 9], timestamps=[0]), leader_epoch=0)
        log.flush()
        setup.logs.high_watermarks[ID] = 4
        setup.logs.checkpoint()

    play(write)
    path = tmp_path / "t-0" / f"{0:020}.log"
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2 + HEADER_SIZE + 2] ^= 1  # in the third batch
    path.write_bytes(damaged)

    async def start(setup: Setup) -> None:
        assert setup.logs.losses.partitions == {ID}
        without_us = (THERE, ELSEWHERE)
        states = [
            topic(HERE),  # it is the only one that could lead
            topic(NO_LEADER, epoch=1, isr=REPLICAS),
            topic(THERE, epoch=2, isr=REPLICAS),  # the controller does not know yet what this replica lacks
        ]
        for state in states:
            await setup.take(state)
            await setup.replicas.open_truncated()
            assert ID in setup.logs.failed
            assert path.read_bytes() == damaged

        await setup.take(topic(THERE, epoch=3, isr=without_us))
        await setup.replicas.open_truncated()

        partition = setup.replicas.partitions[ID]
        assert (partition.leader, partition.log.log_end_offset, partition.high_watermark) == (THERE, 2, 2)
        assert setup.logs.failed == {}
        assert setup.logs.high_watermarks[ID] == 2

    play(start)
