"""The state of the cluster as the controller knows it, and the changes that are due. Pure.

`settle` compares each partition with its best possible state: a dead leader is replaced, dead replicas leave
the ISR, a reassignment is finished. It does not matter which event caused the comparison, or whether an
earlier controller was interrupted: the changes that are left are found again. After an event of some
partitions these are compared; after an event of a broker, the partitions with a replica on it; when a
controller begins, all of them.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from headrace.protocol.ids import TopicPartition
from headrace.protocol.kafka_errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidReplicaAssignment,
    InvalidRequest,
    InvalidUpdateVersion,
    NoReassignmentInProgress,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from headrace.protocol.locations import Location, Locations
from headrace.replication.controller.partition_index import PartitionIndex
from headrace.replication.election import (
    NO_LEADER,
    Partition,
    Progress,
    accept_isr,
    begin_reassignment,
    cancel_reassignment,
    clear_elr,
    distrust,
    elect,
    finish_reassignment,
    prefer,
    shrink_isr_to_live,
    shrink_isr_without,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    broker_id: int
    epoch: int
    rack: str | None = None
    node: str | None = None
    may_have_lost: bool = False  # records of any partition
    lost: Collection[TopicPartition] = ()  # partitions whose logs lack records that they had

    def is_in_doubt(self, key: TopicPartition) -> bool:
        """Return whether the broker's replica of a partition may have lost records."""
        return self.may_have_lost or key in self.lost


class TopicRules(NamedTuple):
    """The configs of a topic that decide which replicas may lead."""

    min_insync_replicas: int
    unclean_allowed: bool


@dataclass(slots=True, kw_only=True)
class TopicModel:
    topic_id: bytes
    version: int  # of the znode with its assignment
    partitions: dict[int, Partition]
    configs: Mapping[str, str] = field(default_factory=dict)  # its own, without the defaults
    revision: int = 0  # increases with every change of the topic while this controller lives


Changes = dict[TopicPartition, Partition]
Survey = Mapping[TopicPartition, Mapping[int, Progress]]
"""The log ends of a partition's candidates, by broker."""

EMPTY_SURVEY: Survey = {}
_PART = 256  # partitions that are compared without a pause
MAX_REMOVED = 1000  # a broker that is further behind is sent the whole state


@dataclass(slots=True)
class ClusterModel:
    """Brokers, topics and their partitions. Methods that return changes do not apply them: `apply` does."""

    members: dict[int, Member] = field(default_factory=dict)
    unreachable: set[int] = field(default_factory=set)  # registered, but updates do not reach them
    shutting_down: set[int] = field(default_factory=set)
    waited_for: set[TopicPartition] = field(default_factory=set)
    """Partitions without a leader whose live replicas are in doubt and have waited long enough for others."""
    topics: dict[str, TopicModel] = field(default_factory=dict)
    removed: OrderedDict[str, bytes] = field(default_factory=OrderedDict)
    """The ids of the topics that were deleted last, by name. Updates need them; see MAX_REMOVED."""
    revision: int = 0  # increases with every change of a topic
    _index: PartitionIndex = field(default_factory=PartitionIndex)

    def __post_init__(self) -> None:
        for _ in self.load(self.topics):
            pass

    @property
    def live(self) -> set[int]:
        """The registered brokers, whether the controller can reach them or not."""
        return set(self.members)

    @property
    def locations(self) -> Locations:
        return {member.broker_id: Location(member.rack, member.node) for member in self.members.values()}

    def items(self) -> Iterator[tuple[TopicPartition, Partition]]:
        return _items(self.topics)

    def find(self, key: TopicPartition) -> Partition:
        topic = self.topics.get(key.topic)
        if topic is None or key.partition not in topic.partitions:
            raise UnknownTopicOrPartition(f"{key} does not exist (UNKNOWN_TOPIC_OR_PARTITION)")
        return topic.partitions[key.partition]

    def load(self, topics: dict[str, TopicModel]) -> Iterator[None]:
        """Replace all topics, and index their partitions; yields every few milliseconds until it is done."""
        index = PartitionIndex()
        for number, (key, partition) in enumerate(_items(topics)):
            index.add(key, partition)
            if number % _PART == _PART - 1:
                yield
        self.topics, self._index = topics, index
        self.waited_for = {key for key, _ in self.select(self.waited_for)}
        self.revision += 1

    def add_topic(self, name: str, topic: TopicModel) -> None:
        self.topics[name] = topic
        self.removed.pop(name, None)
        self.revision += 1
        for index, partition in topic.partitions.items():
            self._index.add(TopicPartition(name, index), partition)

    def add_partitions(self, name: str, partitions: Mapping[int, Partition], version: int) -> None:
        """Add partitions to a topic, whose assignment has this version now."""
        topic = self.topics[name]
        topic.version = version
        for index, partition in partitions.items():
            self._put(TopicPartition(name, index), topic, partition)

    def remove_topic(self, name: str) -> list[TopicPartition]:
        """Remove a topic that is deleted, and return its partitions."""
        topic = self.topics.pop(name, None)
        if topic is None:
            return []
        self.removed[name] = topic.topic_id
        self.removed.move_to_end(name)
        while len(self.removed) > MAX_REMOVED:
            self.removed.popitem(last=False)
        self.revision += 1
        for index, partition in topic.partitions.items():
            self._index.discard(TopicPartition(name, index), partition)
        removed = [TopicPartition(name, index) for index in topic.partitions]
        self.waited_for.difference_update(removed)
        return removed

    def use_rules(self, name: str, configs: Mapping[str, str], rules: TopicRules) -> list[TopicPartition]:
        """Apply the changed configs of a topic, and return its partitions; none if it does not exist."""
        topic = self.topics.get(name)
        if topic is None:
            return []
        topic.configs = configs
        topic.revision += 1
        self.revision += 1
        topic.partitions = {
            index: replace(
                partition,
                min_insync_replicas=rules.min_insync_replicas,
                unclean_allowed=rules.unclean_allowed,
            )
            for index, partition in topic.partitions.items()
        }
        return [TopicPartition(name, index) for index in topic.partitions]

    def apply(self, changes: Changes) -> None:
        """Apply changes that have been written."""
        for key, partition in changes.items():
            topic = self.topics.get(key.topic)
            if topic is None:
                continue
            now = topic.partitions.get(key.partition, partition)
            if (now.min_insync_replicas, now.unclean_allowed) != (
                partition.min_insync_replicas,
                partition.unclean_allowed,
            ):  # the configs have changed meanwhile
                partition = replace(  # noqa: PLW2901
                    partition,
                    min_insync_replicas=now.min_insync_replicas,
                    unclean_allowed=now.unclean_allowed,
                )
            self._put(key, topic, partition)

    def _put(self, key: TopicPartition, topic: TopicModel, partition: Partition) -> None:
        self._index.replace(key, topic.partitions.get(key.partition), partition)
        topic.partitions[key.partition] = partition
        topic.revision += 1
        self.revision += 1
        if partition.leader != NO_LEADER:
            self.waited_for.discard(key)

    def rewrite(self, key: TopicPartition) -> None:
        """Have the partition's state written again unchanged: its later epoch confirms the leader."""
        topic = self.topics.get(key.topic)
        if topic is not None and key.partition in topic.partitions:
            topic.partitions[key.partition] = replace(topic.partitions[key.partition], is_written=False)

    def select(self, keys: Collection[TopicPartition] | None) -> Iterator[tuple[TopicPartition, Partition]]:
        """Iterate over those of `keys` that exist; None: over all partitions."""
        if keys is None:
            yield from self.items()
            return
        for key in keys:
            topic = self.topics.get(key.topic)
            if topic is not None and key.partition in topic.partitions:
                yield key, topic.partitions[key.partition]

    def parts(self, keys: Collection[TopicPartition] | None) -> Iterator[list[TopicPartition]]:
        """Split `keys`, or all partitions, into parts that are compared within some milliseconds.

        Topics may be changed between two parts.
        """
        wanted = self._every_key() if keys is None else iter(keys)
        while part := list(islice(wanted, _PART)):
            yield part

    def _every_key(self) -> Iterator[TopicPartition]:
        for name in list(self.topics):
            topic = self.topics.get(name)
            if topic is not None:
                yield from [TopicPartition(name, index) for index in topic.partitions]

    def to_survey(
        self, keys: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the live candidates of every partition of `keys` that needs a leader and has two or more.

        If replicas are in doubt, they are asked even if there is only one.
        """
        live = self.live
        found = {}
        for key, partition in self.select(keys):
            if partition.leader in live and partition.leader not in self.shutting_down:
                continue
            sound = live.difference(partition.in_doubt)
            candidates = tuple(
                each for each in partition.isr if each in sound and each not in self.shutting_down
            )
            if not candidates:
                candidates = tuple(each for each in partition.elr if each in sound)
            if not candidates and (partition.unclean_allowed or partition.in_doubt):
                candidates = tuple(replica for replica in partition.replicas if replica in live)
            if len(candidates) > 1 or (partition.in_doubt and len(partition.replicas) > 1):
                found[key] = candidates
        return found

    def settle(
        self, survey: Survey = EMPTY_SURVEY, keys: Collection[TopicPartition] | None = None
    ) -> Changes:
        """Return the changes that give each partition its best possible state with the live brokers."""
        live = self.live
        changes = {}
        for key, partition in self.select(keys):
            ranks = survey.get(key, {})
            wanted = elect(
                partition, live, rank=ranks.get, avoid=self.shutting_down, waited=key in self.waited_for
            )
            wanted = shrink_isr_to_live(wanted, live)
            for broker_id in self.shutting_down:
                wanted = shrink_isr_without(wanted, broker_id)
            wanted = clear_elr(finish_reassignment(wanted, live, rank=ranks.get))
            if wanted != partition or not partition.is_written:
                changes[key] = wanted
        return changes

    def returned(self, member: Member) -> Changes:
        """Return the changes for a broker that has restarted and may have lost records: see `distrust`."""
        keys = self._index.on(member.broker_id)
        if not member.may_have_lost:
            keys = [key for key in member.lost if key in keys]
        changes = {}
        for key, partition in self.select(keys):
            wanted = distrust(partition, member.broker_id, self.live)
            if wanted != partition:
                changes[key] = wanted
        return changes

    def in_doubt(self, keys: Collection[TopicPartition] | None = None) -> dict[TopicPartition, Partition]:
        """Return those of `keys` that have no leader because the replicas that could lead are in doubt."""
        return {
            key: partition
            for key, partition in self.select(keys)
            if partition.in_doubt and partition.leader == NO_LEADER
        }

    def is_enough_after_waiting(self, key: TopicPartition, survey: Survey) -> bool:
        """Return whether a partition in doubt gets a leader from the live replicas, if no other returns."""
        ranks = survey.get(key, {})
        elected = elect(self.find(key), self.live, rank=ranks.get, avoid=self.shutting_down, waited=True)
        return elected.leader != NO_LEADER

    def unclean_elections(self, changes: Changes) -> list[TopicPartition]:
        """Return the partitions whose new leader may lack committed records, also because it is in doubt."""
        return [
            key
            for key, partition in changes.items()
            if partition.leader not in {NO_LEADER, self.find(key).leader}
            and (
                partition.leader not in (*self.find(key).isr, *self.find(key).elr)
                or partition.leader in self.find(key).in_doubt
            )
        ]

    def alter_isr(
        self, key: TopicPartition, *, broker_id: int, leader_epoch: int, version: int, isr: Mapping[int, int]
    ) -> Changes:
        """Return the change to the ISR that a leader proposes, with broker epochs (-1: not known)."""
        partition = self.find(key)
        if leader_epoch != partition.leader_epoch or broker_id != partition.leader:
            raise FencedLeaderEpoch(
                f"{key}: broker {broker_id} with leader epoch {leader_epoch} is fenced, broker "
                f"{partition.leader} leads with epoch {partition.leader_epoch} (FENCED_LEADER_EPOCH)"
            )
        if version != partition.version:
            raise InvalidUpdateVersion(
                f"{key}: partition epoch {version}, current is {partition.version} (INVALID_UPDATE_VERSION)"
            )
        if not isr or not set(isr) <= set(partition.replicas):
            raise InvalidRequest(
                f"{key}: the ISR {sorted(isr)} is no subset of the replicas {list(partition.replicas)}"
            )
        for each, epoch in isr.items():
            if each not in partition.isr:
                self._ensure_can_join(each, epoch)
        wanted = accept_isr(partition, tuple(isr))
        if broker_id not in isr:  # the leader's log has failed, and it asks to be replaced
            eligible = tuple(each for each in wanted.elr if each != broker_id)
            asked = replace(wanted, leader=NO_LEADER, last_leader=broker_id, elr=eligible)
            wanted = elect(asked, self.live - self.shutting_down)
            if wanted.leader == NO_LEADER:
                raise IneligibleReplica(f"{key}: no other replica can lead instead of broker {broker_id}")
        wanted = self._finish_reassignment(wanted)
        return {key: wanted} if wanted != partition or not partition.is_written else {}

    def _ensure_can_join(self, broker_id: int, epoch: int) -> None:
        """Raise IneligibleReplica if a replica on this broker cannot join an ISR; epoch -1: not known."""
        member = self.members.get(broker_id)
        if member is None:
            raise IneligibleReplica(f"broker {broker_id} cannot join the ISR: it is not registered")
        if broker_id in self.shutting_down:
            raise IneligibleReplica(f"broker {broker_id} cannot join the ISR: it is shutting down")
        if epoch not in {-1, member.epoch}:
            raise IneligibleReplica(
                f"broker {broker_id} cannot join the ISR: stale broker epoch {epoch}, current is "
                f"{member.epoch}"
            )

    def _finish_reassignment(self, partition: Partition) -> Partition:
        """Finish a reassignment that keeps the leader; `settle` finishes others if the leader agrees."""
        finished = finish_reassignment(partition, self.live)
        return finished if finished.leader == partition.leader else partition

    def prefer(self, key: TopicPartition) -> Changes:
        partition = self.find(key)
        wanted = prefer(partition, self._able)
        if wanted != partition:
            return {key: wanted}
        if partition.leader == partition.replicas[0]:
            raise ElectionNotNeeded(f"{key}: the preferred leader, broker {partition.leader}, leads already")
        raise PreferredLeaderNotAvailable(
            f"{key}: broker {partition.replicas[0]} is not in the ISR, or the controller cannot reach it"
        )

    def elect_unclean(self, key: TopicPartition, survey: Survey = EMPTY_SURVEY) -> Changes:
        """Return the election of any live replica, which loses the records that it does not have."""
        partition = self.find(key)
        if partition.leader in self.live:
            raise ElectionNotNeeded(f"{key}: broker {partition.leader} leads already")
        allowed = replace(partition, unclean_allowed=True)
        wanted = elect(allowed, self.live, rank=survey.get(key, {}).get)
        if wanted.leader not in self.live:
            raise EligibleLeadersNotAvailable(
                f"{key}: no replica of {list(partition.replicas)} is on a live broker"
            )
        return {key: replace(wanted, unclean_allowed=partition.unclean_allowed)}

    @property
    def _able(self) -> set[int]:
        """The brokers that may replace a live leader: the update that makes them leaders reaches them."""
        return self.live - self.shutting_down - self.unreachable

    def unbalanced(self, keys: Collection[TopicPartition] | None = None) -> list[TopicPartition]:
        """Return those of `keys` (None: of all) that their preferred replica could lead but does not."""
        able = self._able
        return [key for key, partition in self.select(keys) if prefer(partition, able) != partition]

    def leaderless(self, keys: Collection[TopicPartition]) -> list[TopicPartition]:
        return [key for key, partition in self.select(keys) if partition.leader not in self.members]

    def reassign(self, key: TopicPartition, target: Sequence[int] | None) -> Changes:
        """Return the start of a reassignment to `target`, or, without a target, its cancellation."""
        partition = self.find(key)
        if target is None:
            if not partition.adding and not partition.removing:
                raise NoReassignmentInProgress(f"{key} is not being reassigned (NO_REASSIGNMENT_IN_PROGRESS)")
            stays = cancel_reassignment(partition)
            if not stays.isr and not stays.elr:
                raise InvalidReplicaAssignment(
                    f"{key}: the reassignment cannot be cancelled, none of the original replicas "
                    f"{list(stays.replicas)} is in sync and could lead"
                )
            if stays.leader not in stays.replicas:
                stays = elect(replace(stays, leader=NO_LEADER, last_leader=stays.leader), self.live)
            return {key: stays}
        if not target or len(set(target)) != len(target) or min(target) < 0:
            raise InvalidReplicaAssignment(f"{key}: {list(target)} is no list of distinct broker ids")
        unknown = (
            set(target) - set(partition.replicas) - self.members.keys()
        )  # a broker with a replica may be down
        if unknown:
            raise InvalidReplicaAssignment(f"{key}: brokers {sorted(unknown)} are not registered")
        wanted = self._finish_reassignment(begin_reassignment(partition, target))
        return {key: wanted} if wanted != partition else {}

    def reassignments(self) -> list[TopicPartition]:
        return list(self._index.moving)

    def led_by(self, broker_id: int) -> list[TopicPartition]:
        found = self.select(self._index.on(broker_id))
        return [key for key, partition in found if partition.leader == broker_id]

    def with_replica_on(self, broker_id: int) -> Collection[TopicPartition]:
        return self._index.on(broker_id)


def _items(topics: Mapping[str, TopicModel]) -> Iterator[tuple[TopicPartition, Partition]]:
    for name, topic in topics.items():
        for index, partition in topic.partitions.items():
            yield TopicPartition(name, index), partition
