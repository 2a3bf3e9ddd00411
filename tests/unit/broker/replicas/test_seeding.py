"""Brokers of one node: a new replica begins with links to the segments of another broker's replica."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker.handlers.seed_replica import seed_replica
from headrace.broker.image import ClusterImage
from headrace.broker.meters import Meters
from headrace.broker.replicas.replicas import Replicas
from headrace.broker.settings.config import BrokerConfig
from headrace.protocol.between_brokers.seed_replica import SeedReplicaRequest, SeedReplicaResponse
from headrace.protocol.between_brokers.update_metadata import (
    INCREMENTAL,
    TOPIC_IS_GONE,
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.peers import PeerGone
from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.identity import Identity
from support.logs import memory_directory, read_all
from support.records import TIMESTAMP, make_batch
from unit.broker.replica_samples import HERE, ID, THERE, TOPIC_ID

SEGMENTS = 3


class Listener:
    def updated(self) -> None: ...

    def topic_changed(self, topic: object, own: object) -> None: ...

    def topic_removed(self, name: str) -> None: ...


class OneBroker:
    """The replicas of one broker, with logs in a directory."""

    def __init__(self, broker_id: int, root: Path, node: "Node") -> None:
        self.id = broker_id
        self.image = ClusterImage("c")
        self.logs = LogDirectory.open(
            root / str(broker_id),
            Identity(broker_id, "c"),
            config_of=lambda _topic: LogConfig(),
            now_ms=lambda: TIMESTAMP,
        )
        config = BrokerConfig.of({"broker.id": str(broker_id)})
        self.replicas = Replicas(
            broker_id,
            self.image,
            Meters(),
            Listener(),
            config=lambda: config,
            logs=lambda: self.logs,
            broker_epoch=lambda: broker_id,
            connect_to=node.connect_to,
            ask_controller=_no_controller,
        )


async def _no_controller(request: Message, versions: range, *, timeout_s: float) -> Any:
    raise PeerGone(f"no controller in {timeout_s} s for {request!r} {versions}")


class Node:
    """Two brokers; what the second asks the first goes through `ask`."""

    def __init__(self, root: Path, names: tuple[str | None, str | None]) -> None:
        self.names = dict(zip((HERE, THERE), names, strict=True))
        self.source, self.target = (OneBroker(each, root, self) for each in (HERE, THERE))
        self.asked: list[SeedReplicaRequest] = []
        self.answer: Callable[[SeedReplicaRequest], Awaitable[SeedReplicaResponse]] = self.link

    async def connect_to(self, _broker_id: int) -> Any:
        return self

    is_open = True

    def close(self) -> None: ...

    async def ask(self, request: Message, _version: int, *, timeout_s: float | None = None) -> Any:
        """Answer a SeedReplica; a follower's Fetch gets none."""
        if not isinstance(request, SeedReplicaRequest):
            raise PeerGone(f"nobody answers within {timeout_s} s")
        self.asked.append(request)
        return await self.answer(request)

    async def link(self, request: SeedReplicaRequest) -> SeedReplicaResponse:
        source = self.source
        broker = SimpleNamespace(
            config=SimpleNamespace(node=self.names[HERE]),
            image=source.image,
            partitions=source.replicas.partitions,
            logs=source.logs,
        )
        context: Any = SimpleNamespace(broker=broker)
        return await seed_replica(request, context)

    async def tell(
        self, *replicas: int, leader: int = HERE, isr: tuple[int, ...] = (HERE,), epoch: int = 0
    ) -> None:
        """Send both brokers the state of the partition."""
        state = UpdateMetadataPartitionState(
            partition_index=0,
            controller_epoch=5,
            leader=leader,
            leader_epoch=epoch,
            isr=isr,
            zk_version=epoch,
            replicas=replicas,
            offline_replicas=[],
        )
        topic = UpdateMetadataTopicState(topic_name="t", topic_id=TOPIC_ID, partition_states=[state])
        live = [
            UpdateMetadataBroker(id=each, endpoints=[], rack=None, broker_epoch=each, node=name)
            for each, name in self.names.items()
        ]
        for broker in (self.source, self.target):
            update = UpdateMetadataRequest(
                controller_id=HERE,
                controller_epoch=5,
                broker_epoch=broker.id,
                type=INCREMENTAL,
                topic_states=[topic],
                live_brokers=live,
            )
            assert await broker.replicas.take(update) == ErrorCode.NONE

    async def begin(self) -> None:
        """Have the first broker lead the partition, with several segments of records."""
        await self.tell(HERE)
        partition = self.source.replicas.partitions[ID]
        for _ in range(SEGMENTS):
            partition.log.roll()
            partition.append(make_batch([bytes(1000)]), acks_all=False)

    async def settled(self) -> None:
        """Return when no replica is being seeded, and no file of a deleted log is left."""
        while tasks := self.target.replicas._seedings._tasks:
            await asyncio.wait(tasks)
        while (task := self.target.replicas._deletions._unlinking) is not None and not task.done():
            await task

    def directories(self) -> list[str]:
        return [path.name for path in self.target.logs.path.iterdir() if path.is_dir()]


Story = Callable[[Node], Awaitable[None]]


def play(root: Path, story: Story, *names: str | None) -> None:
    async def on_loop() -> None:
        node = Node(root, (names[0], names[1]) if names else ("n", "n"))
        try:
            await node.begin()
            await story(node)
            await node.settled()
        finally:
            for broker in (node.source, node.target):
                broker.replicas.stop()
                broker.logs.release()

    asyncio.run(on_loop())


def test_a_new_replica_begins_with_the_records_of_the_other_broker(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        await node.tell(HERE, THERE, epoch=1)
        assert ID not in node.target.replicas.partitions, "it is created when it has its records"
        await node.settled()

        partition = node.target.replicas.partitions[ID]
        assert (partition.leader, partition.leader_epoch) == (HERE, 1)
        assert read_all(partition.log) == read_all(node.source.logs.logs[ID])
        links = [path.stat().st_nlink for path in sorted(partition.log.directory.glob("*.log"))]
        assert links == [2] * SEGMENTS + [1]
        assert node.directories() == ["t-0"]

    play(tmp_path, story)


@pytest.mark.parametrize("names", [("n", "m"), (None, None), ("n", None)])
def test_brokers_of_different_nodes_are_not_asked(
    tmp_path: Path, names: tuple[str | None, str | None]
) -> None:
    async def story(node: Node) -> None:
        await node.tell(HERE, THERE, epoch=1)
        assert node.target.replicas.partitions[ID].log.log_end_offset == 0
        assert node.asked == []

    play(tmp_path, story, *names)


def test_a_replica_of_a_new_topic_is_in_the_isr_and_is_not_seeded(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        await node.tell(HERE, THERE, isr=(HERE, THERE), epoch=1)
        assert ID in node.target.replicas.partitions
        assert node.asked == []

    play(tmp_path, story)


async def _hangs_up(_request: SeedReplicaRequest) -> SeedReplicaResponse:
    raise PeerGone("the connection has ended")


async def _refuses(_request: SeedReplicaRequest) -> SeedReplicaResponse:
    return SeedReplicaResponse(
        error_code=ErrorCode.KAFKA_STORAGE_ERROR, error_message="Invalid cross-device link"
    )


async def _has_nothing(_request: SeedReplicaRequest) -> SeedReplicaResponse:
    return SeedReplicaResponse(log_start_offset=7, end_offset=7)


@pytest.mark.parametrize("answer", [_hangs_up, _refuses, _has_nothing])
def test_a_replica_that_cannot_be_seeded_fetches_everything(tmp_path: Path, answer: Any) -> None:
    async def story(node: Node) -> None:
        node.answer = answer
        await node.tell(HERE, THERE, epoch=1)
        await node.settled()

        partition = node.target.replicas.partitions[ID]
        assert partition.log.log_end_offset == 0
        assert ID in node.target.replicas.fetchers._leaders
        assert node.directories() == []

    play(tmp_path, story)


def test_a_broker_that_did_not_answer_is_not_asked_again_until_it_restarts(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        node.answer = _hangs_up
        await node.tell(HERE, THERE, epoch=1)
        await node.settled()
        await node.tell(HERE, epoch=2)
        await node.tell(HERE, THERE, epoch=3)
        await node.settled()
        assert len(node.asked) == 1
        assert ID in node.target.replicas.partitions

    play(tmp_path, story)


def test_a_replica_on_another_file_system_fetches_everything(tmp_path: Path) -> None:
    with memory_directory() as elsewhere:
        if Path(elsewhere).stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("there is only one file system")

        async def story(node: Node) -> None:
            answers = []

            async def answer(request: SeedReplicaRequest) -> SeedReplicaResponse:
                answers.append(await node.link(request))
                return answers[-1]

            node.answer = answer
            await node.tell(HERE, THERE, epoch=1)
            await node.settled()
            assert [each.error_code for each in answers] == [ErrorCode.KAFKA_STORAGE_ERROR]
            assert node.target.replicas.partitions[ID].log.log_end_offset == 0
            assert node.directories() == []

        (tmp_path / str(THERE)).symlink_to(elsewhere)
        play(tmp_path, story)


class Held:
    """An answer that the test lets go."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.has_linked, self.may_answer = asyncio.Event(), asyncio.Event()
        node.answer = self

    async def __call__(self, request: SeedReplicaRequest) -> SeedReplicaResponse:
        response = await self._node.link(request)
        self.has_linked.set()
        await self.may_answer.wait()
        return response


def test_a_replica_that_is_removed_meanwhile_leaves_nothing(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        held = Held(node)
        await node.tell(HERE, THERE, epoch=1)
        await held.has_linked.wait()
        await node.tell(HERE, epoch=2)
        held.may_answer.set()
        await node.settled()

        assert node.target.replicas.partitions == {}
        assert node.target.logs.logs == {}
        assert node.directories() == []

    play(tmp_path, story)


def test_a_topic_that_is_deleted_meanwhile_leaves_nothing(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        held = Held(node)
        await node.tell(HERE, THERE, epoch=1)
        await held.has_linked.wait()
        await node.tell(HERE, THERE, leader=TOPIC_IS_GONE, epoch=2)
        held.may_answer.set()
        await node.settled()

        assert node.target.logs.logs == {}
        assert node.directories() == []

    play(tmp_path, story)


def test_a_replica_that_becomes_leader_does_not_wait_for_its_seed(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        held = Held(node)
        await node.tell(HERE, THERE, epoch=1)
        await held.has_linked.wait()
        await node.tell(HERE, THERE, leader=THERE, isr=(THERE,), epoch=2)
        partition = node.target.replicas.partitions[ID]
        assert partition.leadership is not None
        held.may_answer.set()
        await node.settled()

        assert node.target.replicas.partitions[ID] is partition
        assert node.directories() == []

    play(tmp_path, story)


def test_a_source_that_is_truncated_while_it_links_refuses(tmp_path: Path) -> None:
    async def story(node: Node) -> None:
        log = node.source.logs.logs[ID]

        async def truncating(request: SeedReplicaRequest) -> SeedReplicaResponse:
            linking = asyncio.ensure_future(node.link(request))
            await asyncio.sleep(0)
            assert not linking.done(), "a thread links the files"
            log.truncate_to(1)
            return await linking

        node.answer = truncating
        await node.tell(HERE, THERE, epoch=1)
        await node.settled()
        assert node.target.replicas.partitions[ID].log.log_end_offset == 0

    play(tmp_path, story)


@pytest.mark.parametrize(
    "change", [{"broker_id": 3}, {"topic_id": b"another".ljust(16)}, {"partition_index": 1}]
)
def test_a_stranger_and_an_unknown_partition_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    async def story(node: Node) -> None:
        staging = node.target.logs.prepare_staging(ID)()
        fields: dict[str, Any] = {
            "broker_id": THERE,
            "topic_name": "t",
            "topic_id": TOPIC_ID,
            "partition_index": 0,
        }
        answer = await node.link(SeedReplicaRequest(**fields | change, staging_directory=str(staging)))
        assert answer.error_code == ErrorCode.POLICY_VIOLATION
        assert list(staging.iterdir()) == []

    play(tmp_path, story)
