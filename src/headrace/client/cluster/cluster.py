"""A cluster's brokers and partitions: what `headrace cluster` does.

with Cluster("127.0.0.1:9092") as cluster:
    cluster.status().under_replicated
"""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from headrace.client.cluster.balance import balance
from headrace.client.cluster.drain import drain
from headrace.client.cluster.moves import Move, Reassignment
from headrace.client.cluster.reading import read_locations, read_partitions, read_reassignments, read_status
from headrace.client.cluster.status import ClusterStatus, PartitionState
from headrace.client.errors import ClientError, NoSuchTopic, raise_for
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection_settings import Target
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition, by_topic
from headrace.protocol.schema import alter_partition_reassignments
from headrace.protocol.schema.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions

POLL_S: Final = 0.25
SETTLED_S: Final = 10.0  # for all brokers to learn that a reassignment is complete
TIMEOUT_MS: Final = 30_000
PREFERRED, UNCLEAN = 0, 1  # election types


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """The result of a leader election; `refused` says why there was none."""

    topic: str
    partition: int
    leader: int | None
    needed: bool
    refused: str | None = None


class Cluster:
    """Brokers, partitions and reassignments. Every call waits for its answer, or raises a ClientError."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._brokers = Brokers(target)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._brokers.close()

    def status(self) -> ClusterStatus:
        """Return the brokers, and the partitions that need attention."""
        return read_status(self._target)

    def brokers(self) -> list[int]:
        return sorted(broker.node_id for broker in self._brokers.metadata().brokers)

    def partitions_of(self, topic: str) -> list[PartitionState]:
        """Return the partitions of a topic; NoSuchTopic if there is none."""
        found = [each for each in self._partitions() if each.topic == topic]
        if not found:
            raise NoSuchTopic(topic)
        return found

    def reassignments(self) -> list[Reassignment]:
        return read_reassignments(self._brokers)

    def check(self, moves: Sequence[Move]) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the current replicas of the partitions to move; ClientError if a move is invalid.

        The controller would refuse one after it had begun with another.
        """
        found = self._brokers.metadata()
        racks = {broker.node_id: broker.rack for broker in found.brokers}
        partitions = {each.topic_partition: each for each in read_partitions(found)}
        topics = {place.topic for place in partitions}
        for move in moves:
            if move.topic not in topics:
                raise NoSuchTopic(move.topic)
            if move.topic_partition not in partitions:
                raise ClientError(f"{move.topic} has no partition {move.partition}")
            if len(set(move.replicas)) != len(move.replicas):
                raise ClientError(
                    f"{move.topic_partition}: brokers {_listed(move.replicas)}: one is named twice"
                )
            for broker_id in move.replicas:
                if broker_id not in racks and broker_id not in partitions[move.topic_partition].replicas:
                    raise ClientError(f"{move.topic_partition}: {_no_broker(broker_id, racks)}")
        return {move.topic_partition: partitions[move.topic_partition].replicas for move in moves}

    def reassign(self, moves: Sequence[Move]) -> dict[TopicPartition, tuple[int, ...]]:
        """Start reassignments, and return the replicas before; none is started if `check` refuses one."""
        before = self.check(moves)
        self._alter({move.topic_partition: move.replicas for move in moves})
        return before

    def cancel(self, places: Iterable[TopicPartition] | None = None) -> list[Reassignment]:
        """Cancel the reassignments of these partitions, or all, and return them."""
        under_way = {each.topic_partition: each for each in self.reassignments()}
        wanted = list(under_way) if places is None else list(places)
        for place in wanted:
            if place not in under_way:
                raise ClientError(f"{place} is not being moved")
        self._alter(dict.fromkeys(wanted))
        return [under_way[place] for place in wanted]

    def wait(self, moves: Sequence[Move]) -> Iterator[int]:
        """Yield how many reassignments are left, until none is; ClientError if one was cancelled."""
        wanted = {move.topic_partition: move for move in moves}
        while left := sum(each.topic_partition in wanted for each in self.reassignments()):
            yield left
            time.sleep(POLL_S)
        deadline = time.monotonic() + SETTLED_S
        # The topic of a partition may have been deleted.
        while elsewhere := [
            partition
            for partition in self._partitions()
            if partition.topic_partition in wanted
            and set(partition.replicas) != set(wanted[partition.topic_partition].replicas)
        ]:
            if time.monotonic() > deadline:
                raise ClientError(
                    f"{elsewhere[0].topic_partition} is on brokers {_listed(elsewhere[0].replicas)}: the "
                    "reassignment was cancelled, or replaced by another"
                )
            time.sleep(POLL_S)
        yield 0

    def brokers_of_node(self, name: str) -> list[int]:
        """Return the live brokers of a node; ClientError if there is none."""
        locations = read_locations(self._brokers, self._brokers.metadata())
        found = [each for each, location in locations.items() if location.node == name]
        if not found:
            names = sorted({location.node for location in locations.values() if location.node})
            there = f"only {', '.join(names)}" if names else "no broker has headrace.node"
            raise ClientError(f"no live broker is on a node {name!r}: {there}")
        return sorted(found)

    def plan_drain(self, drained: Collection[int]) -> list[Move]:
        """Return the moves, those under way included, after which these brokers have no replica."""
        found = self._brokers.metadata()
        locations = read_locations(self._brokers, found)
        reassignments = self.reassignments()
        partitions = _after(reassignments, read_partitions(found))
        for broker_id in drained:
            if broker_id not in locations and not any(broker_id in each.replicas for each in partitions):
                raise ClientError(_no_broker(broker_id, locations))
        leaving = [
            each.goes_on
            for each in reassignments
            if not set(drained).isdisjoint(each.removing) and set(drained).isdisjoint(each.target)
        ]
        return [*leaving, *drain(drained, partitions, locations)]

    def plan_balance(self, node: str) -> list[Move]:
        """Return the moves after which the replicas of a node are spread over its brokers."""
        brokers = self.brokers_of_node(node)
        return balance(brokers, _after(self.reassignments(), self._partitions()))

    def elect(
        self, places: Iterable[TopicPartition] | None = None, *, unclean: bool = False
    ) -> list[Election]:
        """Elect the preferred replicas, or with `unclean` any replica of partitions without a leader.

        Of these partitions, or of all that need it. An unclean leader may lack acknowledged records.
        """
        asked = [
            TopicPartitions(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(places or ()).items()
        ]
        request = ElectLeadersRequest(
            election_type=UNCLEAN if unclean else PREFERRED,
            topic_partitions=None if places is None else asked,
            timeout_ms=TIMEOUT_MS,
        )
        response: ElectLeadersResponse = self._brokers.controller(request)
        leaders = {each.topic_partition: each.leader for each in self._partitions()}
        return [
            Election(
                topic=topic.topic,
                partition=each.partition_id,
                leader=leaders.get(TopicPartition(topic.topic, each.partition_id)),
                needed=each.error_code != ErrorCode.ELECTION_NOT_NEEDED,
                refused=(
                    None
                    if each.error_code in {ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED}
                    else each.error_message or ErrorCode(each.error_code).name.replace("_", " ").lower()
                ),
            )
            for topic in response.replica_election_results
            for each in topic.partition_result
        ]

    def _partitions(self) -> list[PartitionState]:
        return read_partitions(self._brokers.metadata())

    def _alter(self, targets: Mapping[TopicPartition, Sequence[int] | None]) -> None:
        request = alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            timeout_ms=TIMEOUT_MS,
            topics=[
                alter_partition_reassignments.ReassignableTopic(
                    name=topic,
                    partitions=[
                        alter_partition_reassignments.ReassignablePartition(
                            partition_index=index, replicas=targets[TopicPartition(topic, index)]
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(targets).items()
            ],
        )
        response: alter_partition_reassignments.AlterPartitionReassignmentsResponse = (
            self._brokers.controller(request)
        )
        for topic in response.responses:
            for each in topic.partitions:
                raise_for(each.error_code, each.error_message, f"{topic.name}-{each.partition_index}")


def _after(
    reassignments: Iterable[Reassignment], partitions: Iterable[PartitionState]
) -> list[PartitionState]:
    """Return the partitions with the replicas that they have when all reassignments are complete."""
    under_way = {reassignment.topic_partition: reassignment.target for reassignment in reassignments}
    return [replace(each, replicas=under_way.get(each.topic_partition, each.replicas)) for each in partitions]


def _no_broker(broker_id: int, brokers: Iterable[int]) -> str:
    return f"there is no broker {broker_id}, only {_listed(sorted(brokers))}"


def _listed(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))
