"""What the controller knows of the cluster, and what should become of it. Pure.

`settle` compares what is with what should be: partitions whose leader is gone, replicas in sync that are
gone, moves that are complete. It does not matter which event made it look, or whether an earlier controller
was halfway through: what is left to do is found again. After an event of a few partitions it looks at those;
after one of a broker, and when a controller begins, at all.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headrace.controller.errors import (
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
from headrace.protocol.ids import TopicPartition
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
    """A broker that is registered."""

    broker_id: int
    epoch: int
    rack: str | None = None
    trusted: bool = True  # its log has all it ever had: a clean stop, or the machine has not been down since


@dataclass(slots=True, kw_only=True)
class TopicModel:
    topic_id: bytes
    version: int  # of its assignment, as written
    partitions: dict[int, Partition]
    configs: Mapping[str, str] = field(default_factory=dict)  # what it sets itself


Changes = dict[TopicPartition, Partition]
Survey = Mapping[TopicPartition, Mapping[int, Progress]]
"""How far the candidates of a partition are, by broker."""

EMPTY_SURVEY: Survey = {}


@dataclass(slots=True)
class ClusterModel:
    """Brokers, topics and their partitions. `apply` changes it; everything else only answers."""

    members: dict[int, Member] = field(default_factory=dict)
    unreachable: set[int] = field(default_factory=set)  # registered and alive, but not told of changes now
    leaving: set[int] = field(default_factory=set)
    topics: dict[str, TopicModel] = field(default_factory=dict)
    removed: dict[str, bytes] = field(default_factory=dict)  # ids of topics that went, by name

    @property
    def live(self) -> set[int]:
        """Brokers whose registration exists. Whether the controller can reach them is no sign of life."""
        return set(self.members)

    def items(self) -> Iterator[tuple[TopicPartition, Partition]]:
        for name, topic in self.topics.items():
            for index, partition in topic.partitions.items():
                yield TopicPartition(name, index), partition

    def find(self, key: TopicPartition) -> Partition:
        topic = self.topics.get(key.topic)
        if topic is None or key.partition not in topic.partitions:
            raise UnknownTopicOrPartition(f"{key} does not exist (UNKNOWN_TOPIC_OR_PARTITION)")
        return topic.partitions[key.partition]

    def apply(self, changes: Changes) -> None:
        """Take over what has been written."""
        for key, partition in changes.items():
            topic = self.topics.get(key.topic)
            if topic is None:
                continue
            now = topic.partitions.get(key.partition, partition)
            topic.partitions[key.partition] = replace(
                partition,
                min_insync_replicas=now.min_insync_replicas,  # its settings may have changed meanwhile
                unclean_allowed=now.unclean_allowed,
            )

    def rewrite(self, key: TopicPartition) -> None:
        """Have the partition's state written again, as it is: a later state settles who leads."""
        topic = self.topics.get(key.topic)
        if topic is not None and key.partition in topic.partitions:
            topic.partitions[key.partition] = replace(topic.partitions[key.partition], is_written=False)

    # -- what should be ------------------------------------------------------------------------

    def some(self, keys: Collection[TopicPartition] | None) -> Iterator[tuple[TopicPartition, Partition]]:
        """Iterate over these partitions, as far as they exist, or over all."""
        if keys is None:
            yield from self.items()
            return
        for key in keys:
            topic = self.topics.get(key.topic)
            if topic is not None and key.partition in topic.partitions:
                yield key, topic.partitions[key.partition]

    def to_survey(
        self, keys: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the live candidates of every partition (of `keys`) that needs a leader and has a choice."""
        live = self.live
        found = {}
        for key, partition in self.some(keys):
            if partition.leader in live and partition.leader not in self.leaving:
                continue
            candidates = tuple(each for each in partition.isr if each in live and each not in self.leaving)
            if not candidates:
                candidates = tuple(each for each in partition.elr if each in live)
            if not candidates and partition.unclean_allowed:
                candidates = tuple(each for each in partition.replicas if each in live)
            if len(candidates) > 1:
                found[key] = candidates
        return found

    def settle(
        self, survey: Survey = EMPTY_SURVEY, keys: Collection[TopicPartition] | None = None
    ) -> Changes:
        """Return what has to change for partitions to be as well off as they can be with these brokers."""
        live = self.live
        changes = {}
        for key, partition in self.some(keys):
            ranks = survey.get(key, {})
            wanted = elect(partition, live, rank=ranks.get, avoid=self.leaving)
            wanted = shrink_isr_to_live(wanted, live)
            for broker_id in self.leaving:
                wanted = shrink_isr_without(wanted, broker_id)
            wanted = clear_elr(finish_reassignment(wanted, live, rank=ranks.get))
            if wanted != partition or not partition.is_written:
                changes[key] = wanted
        return changes

    def returned(self, member: Member) -> Changes:
        """A broker is back. If it may have lost records, nobody counts on what it had."""
        if member.trusted:
            return {}
        changes = {}
        for key, partition in self.items():
            wanted = distrust(partition, member.broker_id)
            if wanted != partition:
                changes[key] = wanted
        return changes

    def is_unclean(self, changes: Changes) -> list[TopicPartition]:
        """Those whose new leader may lack what was committed: somebody should be told."""
        return [
            key
            for key, partition in changes.items()
            if partition.leader not in {NO_LEADER, self.find(key).leader}
            and partition.leader not in (*self.find(key).isr, *self.find(key).elr)
        ]

    # -- what others ask for -------------------------------------------------------------------

    def alter(
        self, key: TopicPartition, *, broker_id: int, leader_epoch: int, version: int, isr: Mapping[int, int]
    ) -> Changes:
        """A leader proposes a set in sync: broker ids, with the epochs of those that it knows."""
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
        if broker_id not in isr:  # its log has failed: it asks to be replaced
            eligible = tuple(each for each in wanted.elr if each != broker_id)
            asked = replace(wanted, leader=NO_LEADER, last_leader=broker_id, elr=eligible)
            wanted = elect(asked, self.live - self.leaving)
            if wanted.leader == NO_LEADER:
                raise IneligibleReplica(f"{key}: no other replica can lead instead of broker {broker_id}")
        wanted = self._finish_move(wanted)
        return {key: wanted} if wanted != partition or not partition.is_written else {}

    def _ensure_can_join(self, broker_id: int, epoch: int) -> None:
        """Raise IneligibleReplica if a replica on this broker cannot join an ISR; epoch -1: not known."""
        member = self.members.get(broker_id)
        if member is None:
            raise IneligibleReplica(f"broker {broker_id} cannot join the ISR: it is not registered")
        if broker_id in self.leaving:
            raise IneligibleReplica(f"broker {broker_id} cannot join the ISR: it is shutting down")
        if epoch not in {-1, member.epoch}:
            raise IneligibleReplica(
                f"broker {broker_id} cannot join the ISR: stale broker epoch {epoch}, current is "
                f"{member.epoch}"
            )

    def _finish_move(self, partition: Partition) -> Partition:
        """Finish a move if the leader stays; if not, `settle` does, which waits for the leader's consent."""
        finished = finish_reassignment(partition, self.live)
        return finished if finished.leader == partition.leader else partition

    def prefer(self, key: TopicPartition) -> Changes:
        """Let the preferred replica lead."""
        partition = self.find(key)
        wanted = prefer(partition, self._able)
        if wanted != partition:
            return {key: wanted}
        if partition.leader == partition.replicas[0]:
            raise ElectionNotNeeded(f"{key}: the preferred leader, broker {partition.leader}, leads already")
        raise PreferredLeaderNotAvailable(
            f"{key}: broker {partition.replicas[0]} is not in the ISR, or the controller cannot reach it"
        )

    def force(self, key: TopicPartition, survey: Survey = EMPTY_SURVEY) -> Changes:
        """Let any live replica lead, at the price of records that it does not have."""
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
        """Brokers that may replace a leader that is alive: they will hear of it."""
        return self.live - self.leaving - self.unreachable

    def unbalanced(self) -> list[TopicPartition]:
        """Partitions that are not led by their preferred replica although they could be."""
        able = self._able
        return [key for key, partition in self.items() if prefer(partition, able) != partition]

    def move(self, key: TopicPartition, target: Sequence[int] | None) -> Changes:
        """Move a partition to other brokers, or, without a target, have it stay where it was."""
        partition = self.find(key)
        if target is None:
            return self._cancel(key, partition)
        if not target or len(set(target)) != len(target) or min(target) < 0:
            raise InvalidReplicaAssignment(f"{key}: {list(target)} is no list of distinct broker ids")
        unknown = set(target) - set(partition.replicas) - self.members.keys()  # who has it may be away
        if unknown:
            raise InvalidReplicaAssignment(f"{key}: brokers {sorted(unknown)} are not registered")
        wanted = self._finish_move(begin_reassignment(partition, target))
        return {key: wanted} if wanted != partition else {}

    def _cancel(self, key: TopicPartition, partition: Partition) -> Changes:
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

    def moves(self) -> list[TopicPartition]:
        return [key for key, partition in self.items() if partition.adding or partition.removing]

    def led_by(self, broker_id: int) -> list[TopicPartition]:
        return [key for key, partition in self.items() if partition.leader == broker_id]

    def on(self, broker_ids: Collection[int]) -> list[TopicPartition]:
        """Partitions with a replica on any of these brokers."""
        return [key for key, partition in self.items() if not set(broker_ids).isdisjoint(partition.replicas)]
