"""The coordinators of one internal topic: this broker runs one for each partition of it that it leads."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from headrace.broker.coordinators.shard import CoordinatorShard, Expirations
from headrace.broker.errors import NotLeader
from headrace.broker.image import ClusterImage, Node, TopicImage
from headrace.broker.replicas.partition import Partition
from headrace.coordinators.errors import CoordinatorError, CoordinatorNotAvailable, NotCoordinator
from headrace.coordinators.machine import CoordinatorMachine
from headrace.coordinators.partitioner import partition_for
from headrace.protocol.ids import TopicPartition

MOVED_S: Final = 10.0  # for which clients may still send requests to the previous coordinator

Machine = TypeVar("Machine", bound=CoordinatorMachine[Any])


class CoordinatorHost(NamedTuple):
    """What coordinators use of their broker."""

    broker_id: int
    image: ClusterImage
    partitions: Mapping[TopicPartition, Partition]
    ensure_lease: Callable[[Partition], None]
    """Raises NotLeader if another broker may lead the partition by now."""
    loop: Callable[[], asyncio.AbstractEventLoop]


class CoordinatorRuntime(Generic[Machine]):
    """Starts, finds and stops coordinators as leaders change.

    `prepare` is called before every decision, for what a machine has to know of the cluster; `applied` when
    the state of a coordinator has changed, for what has to be done about it elsewhere.
    """

    def __init__(
        self,
        topic: str,
        host: CoordinatorHost,
        new_machine: Callable[[], Machine],
        prepare: Callable[[Machine], None] = lambda _machine: None,
        applied: Callable[[CoordinatorShard[Machine]], None] = lambda _shard: None,
    ) -> None:
        self.topic = topic
        self.new_machine = new_machine
        self.prepare = prepare
        self.applied = applied
        self.loading = asyncio.Lock()  # one partition at a time, so that slices of many do not add up
        self.expirations = Expirations(host.loop)
        self._host = host
        self._shards: dict[int, CoordinatorShard[Machine]] = {}
        self._moved_s: dict[int, float] = {}  # when a partition was led here last, by the clock of the loop

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._host.loop()

    @property
    def shards(self) -> list[CoordinatorShard[Machine]]:
        """The coordinators that are loaded."""
        return [shard for shard in self._shards.values() if shard.is_ready]

    @property
    def all_shards(self) -> list[CoordinatorShard[Machine]]:
        return list(self._shards.values())

    @property
    def is_loading(self) -> bool:
        return any(shard.is_loading for shard in self._shards.values())

    def ensure_all_ready(self) -> None:
        """Raise unless every coordinator of this broker is loaded and holds its lease."""
        for shard in self._shards.values():
            try:
                shard.ensure_ready()
            except NotCoordinator as error:  # the request is not about one key
                raise CoordinatorNotAvailable(str(error)) from error

    def ensure_lease(self, partition: Partition) -> None:
        """Raise NotCoordinator if another broker may coordinate the keys of this partition by now."""
        try:
            self._host.ensure_lease(partition)
        except NotLeader as error:
            raise NotCoordinator(f"the lease has expired: {error}") from error

    # -- finding -------------------------------------------------------------------------------

    def find(self, key: str, listener: str) -> Node:
        """Return the broker that coordinates `key`, or raise CoordinatorNotAvailable."""
        leader = self._leader(key)
        for node in self._host.image.nodes(listener):
            if node.id == leader:
                return node
        raise self._unavailable(key)

    def coordinator_id(self, key: str) -> int:
        """Return the id of the broker that coordinates `key`, or raise CoordinatorNotAvailable."""
        leader = self._leader(key)
        if leader not in self._host.image.brokers:
            raise self._unavailable(key)
        return leader

    def _leader(self, key: str) -> int:
        state = self._topic_image().states.get(self.partition_for(key))
        return -1 if state is None else state.leader

    def _unavailable(self, key: str) -> CoordinatorNotAvailable:
        return CoordinatorNotAvailable(
            f"{self.topic}-{self.partition_for(key)}, which holds {key!r}, has no leader "
            "(COORDINATOR_NOT_AVAILABLE)"
        )

    def shard(self, key: str) -> CoordinatorShard[Machine]:
        """Return the coordinator of `key`, if it is on this broker, loaded, and holds its lease."""
        shard = self._shards.get(self.partition_for(key))
        if shard is None:
            raise NotCoordinator(f"another broker coordinates {key!r} (NOT_COORDINATOR)")
        shard.ensure_ready()
        return shard

    def shard_of(self, index: int) -> CoordinatorShard[Machine]:
        """Return the coordinator of a partition of the topic, or raise NotCoordinator."""
        shard = self._shards.get(index)
        if shard is None:
            raise NotCoordinator(f"another broker leads {self.topic}-{index} (NOT_COORDINATOR)")
        return shard

    def has_just_moved(self, key: str) -> bool:
        """Return whether `key` was coordinated here until a moment ago; clients may not know that yet.

        A coordinator without a lease may have moved, too.
        """
        index = self.partition_for(key)
        moved_s = self._moved_s.get(index)
        return index in self._shards or (moved_s is not None and self.loop.time() - moved_s < MOVED_S)

    def partition_for(self, key: str) -> int:
        """Return the partition of the topic that holds `key`."""
        return partition_for(key, len(self._topic_image().replicas))

    def _topic_image(self) -> TopicImage:
        topic = self._host.image.topics.get(self.topic)
        if topic is None:
            raise CoordinatorNotAvailable(f"there is no {self.topic} yet (COORDINATOR_NOT_AVAILABLE)")
        return topic

    # -- leadership changes --------------------------------------------------------------------

    def follow(self, topic: TopicImage) -> None:
        """Start and stop coordinators: leaders of the topic's partitions may have changed."""
        for index in topic.replicas:
            partition = self._host.partitions.get(TopicPartition(self.topic, index))
            leads = partition is not None and partition.leader == self._host.broker_id
            shard = self._shards.get(index)
            if shard is not None and not (
                leads and shard.partition is partition and shard.leader_epoch == partition.leader_epoch
            ):
                del self._shards[index]
                shard.stop()
                shard = None
                self._moved_s[index] = self.loop.time()
            if leads and shard is None:
                assert partition is not None, "a leader has a replica"
                self._shards[index] = CoordinatorShard(self, partition)

    def reload(self, shard: CoordinatorShard[Machine], why: CoordinatorError) -> None:
        """Replace a coordinator whose append has failed: the new one loads what is in the log."""
        index = shard.partition.id.partition
        if self._shards.get(index) is shard:
            shard.stop(why)
            del self._shards[index]
            if shard.partition.log.offline is None:
                self._shards[index] = CoordinatorShard(self, shard.partition)

    def stop(self) -> None:
        for shard in self._shards.values():
            shard.stop()
        self._shards.clear()
