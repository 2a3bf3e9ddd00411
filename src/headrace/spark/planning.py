"""What a query reads: options become offsets of partitions, and these become ranges for tasks."""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from headrace.protocol.ids import TopicPartition
from headrace.spark.cluster import Cluster, NoSuchTopic
from headrace.spark.errors import RECREATED, RETENTION, UNRECORDED, DataLoss, InvalidOption, Remedy
from headrace.spark.offsets import EARLIEST, LATEST, Offsets, Range
from headrace.spark.options import Bound, SourceOptions
from headrace.spark.position import Position, show_topic_id

_GROUPS_TIMEOUT_S: Final = 3.0

logger = logging.getLogger(__name__)


class Planner:
    """Asks the cluster on behalf of one query."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.cluster = Cluster(options.bootstrap, options.security, client_id=options.client_id)
        # Nobody waits long for a group to be told: a batch is worth more than a figure.
        self.for_groups = Cluster(
            options.bootstrap, options.security, client_id=options.client_id, timeout_s=_GROUPS_TIMEOUT_S
        )

    def close(self) -> None:
        self.cluster.close()
        self.for_groups.close()

    # -- what there is -------------------------------------------------------------------------

    def places(self) -> list[TopicPartition]:
        """The partitions that are to be read; NoSuchTopic if one that is named does not exist."""
        chosen = self.options.selection
        if chosen.pattern is not None:
            return _places(self.cluster.matching(chosen.pattern))
        names = chosen.topics or tuple(dict.fromkeys(place.topic for place in chosen.places))
        found = self.cluster.topics(names)
        for name in names:
            if name not in found:
                raise NoSuchTopic(name)
        if not chosen.places:
            return _places(found)
        for place in chosen.places:
            if place.partition not in found[place.topic]:
                count = len(found[place.topic])
                raise InvalidOption("assign", f"{place} does not exist: {place.topic} has {count} partitions")
        return sorted(chosen.places)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The ids of `topics`, as far as the cluster has told them so far."""
        ids = {topic: show_topic_id(self.cluster.topic_id(topic)) for topic in set(topics)}
        return {topic: each for topic, each in ids.items() if each is not None}

    def latest(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self.cluster.offsets(dict.fromkeys(places, LATEST), read_committed=self.options.read_committed)

    def earliest(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self.cluster.offsets(dict.fromkeys(places, EARLIEST))

    def resolve(self, bound: Bound, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets at which a bound lies in each of `places`."""
        asked: dict[TopicPartition, int] = {}
        found: dict[TopicPartition, int] = {}
        for place in places:
            if bound.timestamp is not None or place in bound.timestamps:
                asked[place] = bound.timestamps.get(place, bound.timestamp or 0)
            elif place in bound.offsets and bound.offsets[place] >= 0:
                found[place] = bound.offsets[place]
            elif place in bound.offsets:
                asked[place] = bound.offsets[place]
            elif bound.otherwise is None:
                raise InvalidOption(
                    bound.option,
                    f"{place} is to be read and not named; name all partitions, -2 is earliest, -1 is latest",
                )
            else:
                asked[place] = bound.otherwise
        self._check_named(bound, found.keys() | asked.keys())
        return found | self._looked_up(bound, asked)

    def _check_named(self, bound: Bound, places: Iterable[TopicPartition]) -> None:
        unknown = sorted((bound.offsets.keys() | bound.timestamps.keys()) - set(places))
        if unknown:
            raise InvalidOption(bound.option, f"{unknown[0]} is named, and is not among what is to be read")

    def _looked_up(self, bound: Bound, asked: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found = self.cluster.offsets(asked, read_committed=self.options.read_committed)
        late = [place for place, offset in found.items() if offset < 0]
        if late and bound.late is None:
            raise InvalidOption(
                bound.option,
                f"{late[0]} has no record from {asked[late[0]]} on; choose an earlier timestamp, or set "
                "startingOffsetsByTimestampStrategy to latest",
            )
        return found | (self.latest(late) if late else {})

    # -- what to read --------------------------------------------------------------------------

    def ranges(self, start: Offsets, end: Offsets) -> list[Range]:
        """What lies between two states of a query; DataLoss if some of it is not there any more."""
        self.check_gone(start, end)
        wanted = [Range(place, start[place], last) for place, last in sorted(end.items()) if place in start]
        earliest = self.earliest(each.place for each in wanted if each.size > 0)
        found: list[Range] = []
        for each in wanted:
            first = each.first
            if each.size < 0:
                self._lose(
                    f"{each.place} was read up to offset {each.first} and ends at {each.last} now: "
                    "has the topic been deleted and made again?"
                )
            elif each.size and earliest[each.place] > first:
                self._lose(f"{each} are wanted, and {each.place} begins at {earliest[each.place]} by now")
                first = min(earliest[each.place], each.last)
            found.append(Range(each.place, first, max(first, each.last)))
        return found

    def initial(self) -> Position:
        """Where a new query begins."""
        if self.options.initial is not None:
            return self.options.initial
        places = self.places()
        ids = self.topic_ids(place.topic for place in places)
        return Position(offsets=self.resolve(self.options.starting, places), topic_ids=ids)

    def initial_unrecorded(self, ends: Offsets) -> dict[TopicPartition, int]:
        """Where the first batch of a query begins whose checkpoint has no initial offsets, only its `ends`.

        Spark's Kafka source keeps them where a Python source cannot look, and earlier versions did not.
        """
        initial = self.initial().offsets
        is_unknown = self.options.initial is None and self.options.starting.has_latest
        for place, end in sorted(ends.items()):
            if is_unknown or initial.get(place, 0) > end:
                self._lose(
                    f"the first batch of the query ends at offset {end} of {place}, and its checkpoint does "
                    "not say where that batch begins",
                    UNRECORDED,
                )
                return dict(ends)
        return {place: initial[place] for place in ends if place in initial}

    def check_recreated(self, known: Position, topic_ids: Mapping[str, str]) -> list[str]:
        """The topics that are others than those that were read; DataLoss unless that may be."""
        recreated = known.recreated(topic_ids)
        for topic in recreated:
            self._lose(
                f"topic {topic} was deleted and recreated: the query reads the topic with id "
                f"{known.topic_ids[topic]}, and the id is {topic_ids[topic]} now",
                RECREATED,
            )
        return recreated

    def current_ids(self, topics: Iterable[str], *, afresh: bool) -> dict[str, str]:
        """The ids of `topics`; the cluster is asked for those that it has not told yet, `afresh` for all."""
        wanted = set(topics)
        asked = wanted if afresh else wanted - self.topic_ids(wanted).keys()
        if asked:
            self.cluster.topics(asked)
        return self.topic_ids(wanted)

    def check_gone(self, start: Offsets, end: Offsets) -> None:
        """DataLoss if a partition that has been read is not there any more."""
        lost = sorted(place for place in start if place not in end)
        if lost:
            self._lose(f"{lost[0]} is gone: it was read up to offset {start[lost[0]]}")

    def _lose(self, what: str, remedy: Remedy = RETENTION) -> None:
        if self.options.fail_on_data_loss:
            raise DataLoss(what, remedy)
        logger.warning("%s; failOnDataLoss is false: %s", what, remedy.instead)

    def whole_batch(self) -> list[Range]:
        """What `spark.read` reads: from where the options say to where they say."""
        places = self.places()
        start = self.resolve(self.options.starting, places)
        end = self.resolve(self.options.ending, places)
        earliest, latest = self.earliest(places), self.latest(places)
        found: list[Range] = []
        for place in places:
            first, last = start[place], end[place]
            if last > latest[place]:
                raise InvalidOption(
                    self.options.ending.option, f"{place} ends at offset {latest[place]}, before {last}"
                )
            if first > last and place in self.options.starting.offsets:
                raise InvalidOption(
                    self.options.starting.option, f"offset {first} of {place} lies after the end, {last}"
                )
            if first < earliest[place]:
                self._lose(f"{Range(place, first, last)} are wanted, and {place} begins at {earliest[place]}")
                first = earliest[place]
            found.append(Range(place, min(first, last), last))
        return found


def _places(topics: Mapping[str, Iterable[int]]) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for topic in sorted(topics) for partition in topics[topic]]
