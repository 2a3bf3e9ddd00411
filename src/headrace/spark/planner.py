"""The plan of a query: its options become offsets of partitions, and these become ranges for tasks."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from headrace.client.wire.connection import Address
from headrace.protocol.ids import TopicPartition
from headrace.spark.errors import RECREATED, RETENTION, UNRECORDED, InvalidOption, Remedy, lose
from headrace.spark.options import Bound, SourceOptions
from headrace.spark.patterns import topic_pattern
from headrace.spark.position import Position
from headrace.tables.reader.cluster import ClusterConnections
from headrace.tables.reader.errors import no_such_topic
from headrace.tables.reader.offsets import EARLIEST, LATEST, Offsets, Range
from headrace.tables.reader.topic_ids import show_topic_id

LOG_START_MAX_AGE_S: Final = 1.0
_GROUPS_TIMEOUT_S: Final = 3.0


class Planner:
    """Plans the reads of one query."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.cluster = ClusterConnections(options.bootstrap, options.security, client_id=options.client_id)
        # A short timeout: batches must not wait for the commits that only show lag to people.
        self.for_groups = ClusterConnections(
            options.bootstrap, options.security, client_id=options.client_id, timeout_s=_GROUPS_TIMEOUT_S
        )
        self._earliest: dict[TopicPartition, int] = {}
        self._earliest_s = -math.inf

    def close(self) -> None:
        self.cluster.close()
        self.for_groups.close()

    # -- partitions and offsets ----------------------------------------------------------------

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions to read; NoSuchTopic if a named topic does not exist."""
        chosen = self.options.selection
        if chosen.pattern is not None:
            return _partitions(self.cluster.matching(topic_pattern(chosen.pattern).fullmatch))
        names = chosen.topics or tuple(dict.fromkeys(partition.topic for partition in chosen.partitions))
        found = self.cluster.topics(names)
        for name in names:
            if name not in found:
                raise no_such_topic(name)
        if not chosen.partitions:
            return _partitions(found)
        for partition in chosen.partitions:
            if partition.partition not in found[partition.topic]:
                count = len(found[partition.topic])
                raise InvalidOption("assign", f"{partition} does not exist: the topic has {count} partitions")
        return sorted(chosen.partitions)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the ids of `topics` that earlier Metadata responses had."""
        ids = {topic: show_topic_id(self.cluster.topic_id(topic)) for topic in set(topics)}
        return {topic: each for topic, each in ids.items() if each is not None}

    def leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Address]:
        """Return the leaders of `partitions` that earlier Metadata responses had."""
        found = {partition: self.cluster.known_leader(partition) for partition in partitions}
        return {partition: leader for partition, leader in found.items() if leader is not None}

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        at = dict.fromkeys(partitions, LATEST)
        return self.cluster.offsets(at, read_committed=self.options.read_committed)

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self.cluster.offsets(dict.fromkeys(partitions, EARLIEST))

    def resolve(self, bound: Bound, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset of a bound in each of `partitions`."""
        asked: dict[TopicPartition, int] = {}
        found: dict[TopicPartition, int] = {}
        for partition in partitions:
            if bound.timestamp is not None or partition in bound.timestamps:
                asked[partition] = bound.timestamps.get(partition, bound.timestamp or 0)
            elif partition in bound.offsets and bound.offsets[partition] >= 0:
                found[partition] = bound.offsets[partition]
            elif partition in bound.offsets:
                asked[partition] = bound.offsets[partition]
            elif bound.otherwise is None:
                raise InvalidOption(
                    bound.option,
                    f"{partition} is missing: name all partitions, with -2 for earliest and -1 for latest",
                )
            else:
                asked[partition] = bound.otherwise
        if unknown := (bound.offsets.keys() | bound.timestamps.keys()) - found.keys() - asked.keys():
            raise InvalidOption(bound.option, f"{min(unknown)} is named, and is not to be read")
        found |= self.cluster.offsets(asked, read_committed=self.options.read_committed)
        late = [partition for partition, offset in found.items() if offset < 0]
        if late and bound.late is None:
            raise InvalidOption(
                bound.option,
                f"{late[0]} has no record from {asked[late[0]]} on; choose an earlier timestamp, or set "
                "startingOffsetsByTimestampStrategy to latest",
            )
        return found | (self.latest(late) if late else {})

    # -- ranges --------------------------------------------------------------------------------

    def ranges(self, start: Offsets, end: Offsets) -> list[Range]:
        """Return the ranges between two positions of a query; DataLoss if records of them are deleted."""
        self.check_gone(start, end)
        wanted = [Range(each, start[each], last) for each, last in sorted(end.items()) if each in start]
        earliest = self._recent_earliest([each for each in wanted if each.size > 0])
        found: list[Range] = []
        for each in wanted:
            first = each.first
            if each.size < 0:
                self._lose(
                    f"{each.partition} was read up to offset {each.first} and ends at {each.last} now: "
                    "was the topic deleted and recreated?"
                )
            elif each.size and earliest[each.partition] > first:
                log_start = earliest[each.partition]
                self._lose(f"{each} are wanted, and {each.partition} begins at {log_start} by now")
                first = min(log_start, each.last)
            found.append(Range(each.partition, first, max(first, each.last)))
        return found

    def _recent_earliest(self, wanted: Sequence[Range]) -> dict[TopicPartition, int]:
        """Return the log starts of the partitions, or those of a moment ago if all ranges are after them.

        If records are deleted after that, the task that reads them notices it, as it has to in any case.
        """
        now_s = time.monotonic()
        if now_s - self._earliest_s > LOG_START_MAX_AGE_S or any(
            each.first < self._earliest.get(each.partition, math.inf) for each in wanted
        ):
            self._earliest = self.earliest(each.partition for each in wanted)
            self._earliest_s = now_s
        return self._earliest

    def initial(self) -> Position:
        """Return the position where a new query begins."""
        if self.options.initial is not None:
            return self.options.initial
        partitions = self.partitions()
        ids = self.topic_ids(partition.topic for partition in partitions)
        return Position(offsets=self.resolve(self.options.starting, partitions), topic_ids=ids)

    def initial_unrecorded(self, ends: Offsets) -> dict[TopicPartition, int]:
        """Return where the first batch begins if the checkpoint has only its `ends`, no initial offsets.

        Spark's Kafka source keeps them where a Python source cannot look; our earlier versions kept none.
        """
        initial = self.initial().offsets
        is_unknown = self.options.initial is None and self.options.starting.has_latest
        for partition, end in sorted(ends.items()):
            if is_unknown or initial.get(partition, 0) > end:
                self._lose(
                    f"the first batch of the query ends at offset {end} of {partition}, and its checkpoint "
                    "does not say where that batch begins",
                    UNRECORDED,
                )
                return dict(ends)
        return {partition: initial[partition] for partition in ends if partition in initial}

    def check_recreated(self, known: Position, topic_ids: Mapping[str, str]) -> list[str]:
        """Return the topics that were recreated since they were read; DataLoss if failOnDataLoss is set."""
        recreated = known.recreated(topic_ids)
        for topic in recreated:
            self._lose(
                f"topic {topic} was deleted and recreated: the query reads the topic with id "
                f"{known.topic_ids[topic]}, and the id is {topic_ids[topic]} now",
                RECREATED,
            )
        return recreated

    def current_ids(self, topics: Iterable[str], *, afresh: bool) -> dict[str, str]:
        """Return the ids of `topics`, from the cluster if they are not known yet, or with `afresh`."""
        wanted = set(topics)
        asked = wanted if afresh else wanted - self.topic_ids(wanted).keys()
        if asked:
            self.cluster.topics(asked)
        return self.topic_ids(wanted)

    def check_gone(self, start: Offsets, end: Offsets) -> None:
        """Raise DataLoss if a partition that was read does not exist any more."""
        lost = sorted(partition for partition in start if partition not in end)
        if lost:
            self._lose(f"{lost[0]} is gone: it was read up to offset {start[lost[0]]}")

    def _lose(self, what: str, remedy: Remedy = RETENTION) -> None:
        lose(what, remedy, fails=self.options.fail_on_data_loss)

    def whole_batch(self) -> list[Range]:
        """Return the ranges that `spark.read` reads, between the two bounds of the options."""
        partitions = self.partitions()
        start = self.resolve(self.options.starting, partitions)
        end = self.resolve(self.options.ending, partitions)
        earliest, latest = self.earliest(partitions), self.latest(partitions)
        found: list[Range] = []
        for partition in partitions:
            first, last = start[partition], end[partition]
            if last > latest[partition]:
                why = f"{partition} ends at offset {latest[partition]}, before {last}"
                raise InvalidOption(self.options.ending.option, why)
            if first > last and partition in self.options.starting.offsets:
                raise InvalidOption(
                    self.options.starting.option, f"offset {first} of {partition} lies after the end, {last}"
                )
            if first < earliest[partition]:
                wanted, log_start = Range(partition, first, last), earliest[partition]
                self._lose(f"{wanted} are wanted, and {partition} begins at {log_start}")
                first = log_start
            found.append(Range(partition, min(first, last), last))
        return found


def _partitions(topics: Mapping[str, Iterable[int]]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for topic in sorted(topics) for partition in topics[topic]]
