"""Consumer groups of a cluster: what `headrace group` does.

GroupAdmin("127.0.0.1:9092").describe(["billing"])[0].total_lag
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import OffsetSpec

from headrace.client.connection import TIMEOUT_S, Connection, Place
from headrace.client.errors import ClientError, GroupActive, NoSuchGroup, translate
from headrace.client.groups import Group, GroupSummary, group, owners, state_of, summary, type_of
from headrace.client.reset import Reset, Standing, Target, ToTime, plan

ASKED_AT_ONCE: Final = 100  # groups; each is a request of its own


class GroupAdmin(Connection):
    """Consumer groups. Every call waits for its answer, or raises a ClientError."""

    def list_groups(
        self, states: Collection[str] = (), types: Collection[str] = ()
    ) -> Sequence[GroupSummary]:
        """Every group that has a name, by it; only of these states and types if any are given."""
        listed = self._wait(
            "the groups", lambda: self._client.list_consumer_groups(request_timeout=TIMEOUT_S)
        )
        for error in listed.errors:
            raise translate(error, "the groups", self._bootstrap)
        wanted = [
            each.group_id
            for each in listed.valid
            if each.group_id  # Kafka lets clients commit for a group without a name; it cannot be asked for
            and (not states or state_of(each) in states)
            and (not types or type_of(each) in types)
        ]
        return [
            summary(found)
            for _, found in sorted(self._described(wanted).items())
            if found.state is not ConsumerGroupState.DEAD  # it has gone meanwhile
        ]

    def describe(self, names: Iterable[str]) -> list[Group]:
        """These groups with their members and offsets; NoSuchGroup if one of them is not there."""
        described = self._existing(names)
        committed = self._committed(described)
        places = {place for name, found in described.items() for place in (*committed[name], *owners(found))}
        ends = self._offsets(places, OffsetSpec.latest())
        return [group(found, committed[name], ends) for name, found in described.items()]

    def plan_reset(
        self,
        name: str,
        target: Target,
        scope: Mapping[str, Sequence[int]] | None = None,
        *,
        may_be_new: bool = False,
    ) -> list[Reset]:
        """What moving the group's offsets would change; GroupActive while it has members.

        The scope is some partitions of each topic, () for all of them; None is all that is committed.
        """
        self.check_inactive([name], may_be_new=may_be_new)
        committed = self._committed([name])[name]
        places = sorted(committed) if scope is None else self._places(scope)
        return plan(target, self._standings(places, committed, target))

    def reset(self, name: str, resets: Iterable[Reset]) -> None:
        """Commit what `plan_reset` has found; GroupActive if a member has come meanwhile."""
        new = [TopicPartition(each.topic, each.partition, each.new) for each in resets]
        if not new:
            return
        asked = [ConsumerGroupTopicPartitions(name, new)]
        done = self._wait(
            name,
            lambda: self._client.alter_consumer_group_offsets(asked, request_timeout=TIMEOUT_S)[name],
        )
        for each in done.topic_partitions:
            if each.error is None:
                continue
            if each.error.code() == KafkaError.UNKNOWN_MEMBER_ID:  # while there are members, only they commit
                raise GroupActive(name)
            raise translate(each.error, each.topic, self._bootstrap)

    def delete(self, names: Iterable[str]) -> None:
        """Delete groups and their offsets; none of them if one is not there or has members."""
        wanted = list(dict.fromkeys(names))
        self.check_inactive(wanted)
        if wanted:
            self._wait_for_all(lambda: self._client.delete_consumer_groups(wanted, request_timeout=TIMEOUT_S))

    def check_inactive(self, names: Iterable[str], *, may_be_new: bool = False) -> None:
        """GroupActive if one of them has members, NoSuchGroup if it is not there and has to be."""
        described = self._described(names) if may_be_new else self._existing(names)
        for name, found in described.items():
            if found.members:
                raise GroupActive(name, len(found.members))

    # -- asking --------------------------------------------------------------------------------

    def _described(self, names: Iterable[str]) -> dict[str, Any]:
        """Librdkafka's descriptions; a group that is not there is described as dead."""
        wanted = list(dict.fromkeys(names))
        if "" in wanted:
            raise ClientError("a group without a name cannot be asked for")
        found: dict[str, Any] = {}
        for some in _portions(wanted):
            ask = partial(self._client.describe_consumer_groups, some, request_timeout=TIMEOUT_S)
            found |= self._wait_for_all(ask)
        return found

    def _existing(self, names: Iterable[str]) -> dict[str, Any]:
        described = self._described(names)
        for name, found in described.items():
            if found.state is ConsumerGroupState.DEAD:
                raise NoSuchGroup(name)
        return described

    def _committed(self, names: Iterable[str]) -> dict[str, dict[Place, int]]:
        """What each group has committed, by partition."""

        def ask(some: Sequence[str]) -> dict[str, Any]:
            return {  # a call is for one group
                name: self._client.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(name)], request_timeout=TIMEOUT_S
                )[name]
                for name in some
            }

        found: dict[str, Any] = {}
        for some in _portions(list(names)):
            found |= self._wait_for_all(partial(ask, some))
        return {
            name: {
                Place(each.topic, each.partition): each.offset
                for each in answer.topic_partitions
                if each.error is None and each.offset >= 0
            }
            for name, answer in found.items()
        }

    def _standings(
        self, places: Sequence[Place], committed: Mapping[Place, int], target: Target
    ) -> Iterator[Standing]:
        starts = self._offsets(places, OffsetSpec.earliest())
        ends = self._offsets(places, OffsetSpec.latest())
        times: Mapping[Place, int | None] = {}
        if isinstance(target, ToTime):
            times = self._offsets(places, OffsetSpec.for_timestamp(target.time_ms))
        for place in places:
            start, end, offset = starts[place], ends[place], committed.get(place)
            if start is None or end is None:
                raise ClientError(f"{place} is not there, or has no leader")
            yield Standing(place=place, committed=offset, start=start, end=end, at_time=times.get(place))

    def _places(self, scope: Mapping[str, Sequence[int]]) -> list[Place]:
        """The partitions in `scope`, if they are there."""
        places = []
        for topic, wanted in scope.items():
            there = self._partitions_of(topic)
            for index in wanted:
                if index not in there:
                    raise ClientError(f"{topic} has no partition {index}, only 0 to {max(there)}")
            places += [Place(topic, index) for index in sorted(set(wanted) or there)]
        return places

    def _partitions_of(self, topic: str) -> set[int]:
        asked = TopicCollection([topic])
        found = self._wait(
            topic, lambda: self._client.describe_topics(asked, request_timeout=TIMEOUT_S)[topic]
        )
        return {partition.id for partition in found.partitions}


def _portions(names: Sequence[str]) -> Iterator[list[str]]:
    for first in range(0, len(names), ASKED_AT_ONCE):
        yield list(names[first : first + ASKED_AT_ONCE])
