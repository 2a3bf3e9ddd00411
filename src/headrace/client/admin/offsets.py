"""What stands where: the offsets of topics, how far groups are, and deleting what is old."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, NoReturn, Self

from confluent_kafka import TopicPartition as RdkafkaPartition
from confluent_kafka.admin import OffsetSpec

from headrace.client.admin.arguments import check_topic, ends_of, group_offsets, time_of
from headrace.client.connection import TIMEOUT_S, Answer, Connection
from headrace.client.errors import ClientError, Closed, NoSuchTopic
from headrace.client.groups.admin import GroupAdmin
from headrace.client.groups.group import Group, GroupSummary
from headrace.client.groups.reset import Reset
from headrace.client.hints import ADMIN, Hints
from headrace.client.settings import BOOTSTRAP, Bootstrap, bootstrap_of, build, gather
from headrace.protocol.ids import TopicPartition


class Span(NamedTuple):
    """What a partition has: from `start`, which is included, to `next`, which is the next one written."""

    start: int
    next: int


class OffsetAdmin(Hints, Connection):
    """Offsets and groups. Every call waits for its answer, or raises a ClientError."""

    _hints = ADMIN

    def __init__(
        self, bootstrap: Bootstrap = None, options: Mapping[str, str] | None = None, **named: object
    ) -> None:
        """All but `bootstrap` are librdkafka's settings, dotted or as keywords: `sasl_username="me"`."""
        given = gather(bootstrap, defaults={}, settings=options, named=named)
        where = bootstrap_of(given)
        self._options: dict[str, Any] = {key: value for key, value in given.items() if key not in BOOTSTRAP}
        self._closed = False
        build(partial(super().__init__, where), self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, _error: BaseException | None, _trace: object) -> None:
        self.close()

    def close(self) -> None:
        """Part from the brokers. May be called again."""
        self._closed = True
        self._client = _GONE
        for part in ("_groups", "_live"):  # if they were made
            if (made := vars(self).get(part)) is not None:
                made.close()

    def _ask(self, what: str, ask: Callable[[], Answer]) -> Answer:
        held = self._client  # librdkafka's end would take the answer along, if somebody closes us meanwhile
        try:
            self._check_open()
            return super()._ask(what, ask)
        finally:
            del held

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("admin")

    # -- topics --------------------------------------------------------------------------------

    def offsets(self, topic: str) -> dict[int, Span]:
        """Where each partition of a topic begins and ends; those without a leader are left out."""
        places = self._places_of(topic)
        starts = self._offsets(places, OffsetSpec.earliest())
        ends = self._offsets(places, OffsetSpec.latest())
        return {
            place.partition: Span(start, end)
            for place in places
            if (start := starts.get(place)) is not None and (end := ends.get(place)) is not None
        }

    def offsets_at(self, topic: str, time_ms: int) -> dict[int, int | None]:
        """The first offset of each partition written at this time or later; None if there is none."""
        which = OffsetSpec.for_timestamp(time_of(time_ms))
        found = self._offsets(self._places_of(topic), which)
        return {place.partition: offset for place, offset in found.items()}

    def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int]:
        """Delete what is before these offsets, by partition; -1 is all. Returns where each begins now."""
        check_topic(topic)
        ends = ends_of(before)
        self._check_places(TopicPartition(topic, index) for index in ends)
        asked = [RdkafkaPartition(topic, index, offset) for index, offset in ends.items()]
        if not asked:
            return {}
        futures = self._ask(topic, lambda: self._client.delete_records(asked, request_timeout=TIMEOUT_S))
        return {
            each.partition: int(
                self._ask(str(TopicPartition(topic, each.partition)), future.result).low_watermark
            )
            for each, future in futures.items()
        }

    def _check_places(self, places: Iterable[TopicPartition]) -> None:
        """Refuse partitions that are not there: a broker says of them what it says of topics."""
        by_topic: dict[str, list[int]] = {}
        for place in places:
            by_topic.setdefault(place.topic, []).append(place.partition)
        for topic, indexes in by_topic.items():
            there = {place.partition for place in self._places_of(topic)}
            for index in indexes:
                if index not in there:
                    raise ClientError(f"{topic} has no partition {index}, only 0 to {max(there)}")

    def _places_of(self, topic: str) -> list[TopicPartition]:
        check_topic(topic)
        found = self._ask(topic, lambda: self._client.list_topics(timeout=TIMEOUT_S)).topics.get(topic)
        if found is None:
            raise NoSuchTopic(topic)
        return [TopicPartition(topic, index) for index in sorted(found.partitions)]

    # -- groups --------------------------------------------------------------------------------

    @cached_property
    def _groups(self) -> GroupAdmin:
        return GroupAdmin(self._bootstrap, self._options)

    def _open_groups(self) -> GroupAdmin:
        self._check_open()
        return self._groups

    def list_groups(self) -> list[GroupSummary]:
        """Every group, by name."""
        return list(self._open_groups().list_groups())

    def describe_group(self, name: str) -> Group:
        """A group with its members and offsets; NoSuchGroup if there is none."""
        return self._open_groups().describe([name])[0]

    def lag(self, group: str) -> dict[TopicPartition, int]:
        """How many records the group has not committed yet, in each partition of which it has any."""
        return {
            TopicPartition(each.topic, each.partition): each.lag
            for each in self.describe_group(group).partitions
            if each.lag is not None
        }

    def set_group_offsets(self, group: str, offsets: Mapping[TopicPartition | tuple[str, int], int]) -> None:
        """Have a group go on there; GroupActive while it has members. A new name is a new group."""
        wanted = group_offsets(offsets)
        self._open_groups().check_inactive([group], may_be_new=True)
        self._check_places(wanted)
        self._open_groups().reset(
            group,
            [
                Reset(topic=topic, partition=index, old=None, new=offset)
                for (topic, index), offset in wanted.items()
            ],
        )

    def delete_group(self, name: str) -> None:
        """Forget a group and its offsets; GroupActive while it has members."""
        self._open_groups().delete([name])


class _Gone:
    """What is left of a client that was closed."""

    def __getattr__(self, _name: str) -> NoReturn:
        raise Closed("admin")


_GONE: Final[Any] = _Gone()
