"""Consumer groups of a cluster: what `headrace group` does.

GroupAdmin(Brokers("127.0.0.1:9092")).describe(["billing"])[0].total_lag
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from headrace.client.errors import BadSetting, ClientError, GroupActive, NoSuchGroup, NoSuchTopic, Unreachable
from headrace.client.groups.coordinators import (
    Ask,
    Offsets,
    ask_coordinators,
    backoff_for,
    commit,
    committed,
    delete,
    delete_offsets,
    describe,
    listed,
)
from headrace.client.groups.group import DEAD, Described, Group, GroupSummary, group, owners, summary
from headrace.client.groups.reset import Reset, Standing, Target, ToTime, plan
from headrace.client.wire.brokers import PARTIAL_S, QUESTION_S, Brokers
from headrace.client.wire.offsets import read_offsets
from headrace.client.wire.requests import EARLIEST, LATEST, Node
from headrace.client.wire.retry import Answers, Backoff
from headrace.protocol.ids import TopicPartition

LEFT_S: Final = 0.5  # for the end offsets, however long the requests before took

logger = logging.getLogger(__name__)

Key = TypeVar("Key")
Answer = TypeVar("Answer")


class Summaries(list[GroupSummary]):
    """Groups, and a sentence for each broker whose groups are missing."""

    missing: tuple[str, ...] = ()


class GroupAdmin:
    """Consumer groups, for any number of threads. A call waits for its answer, or raises a ClientError."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._logged: tuple[str, ...] = ()  # the missing brokers of the last warning

    def list_groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> Summaries:
        """Return every group, by name; only of these states and types if any are given.

        Groups whose coordinator does not answer are missing, and `missing` says which broker that is.
        """
        listing = listed(self._brokers)
        if listing.missing and not listing.answered:
            raise Unreachable(f"no broker lists its groups: {'; '.join(listing.missing)}")
        wanted = {
            name: each.node
            for name, each in sorted(listing.groups.items())
            if (not states or each.state in {*states, ""}) and (not types or each.type in {*types, ""})
        }
        described = self._ask(wanted, describe, backoff_for(wanted), wanted)
        found = Summaries(
            summary(each)
            for _, each in sorted(described.answers.items())
            if each.state != DEAD
            and each.state in (states or {each.state})
            and each.type in (types or {each.type})
        )
        found.missing = tuple(
            dict.fromkeys([*listing.missing, *(each.why for each in described.missing.values())])
        )
        if found.missing and found.missing != self._logged:
            logger.warning("groups may be missing: %s", "; ".join(found.missing))
        self._logged = found.missing
        return found

    def describe(self, names: Iterable[str]) -> list[Group]:
        """Return these groups with their members and offsets; NoSuchGroup if one does not exist.

        Ends and lags are None in partitions whose leader does not answer.
        """
        wanted = _named(names)
        backoff = backoff_for(wanted)
        described = self._existing(wanted, backoff)
        offsets = self._ask(described, committed, backoff, _coordinators(described)).complete()
        return self._with_ends(described, offsets, backoff)

    def describe_there(self, names: Iterable[str]) -> list[Group]:
        """Return those of the groups that exist, and whose coordinators answer."""
        wanted = _named(names)
        backoff = backoff_for(wanted)
        answers = self._ask(wanted, describe, backoff).answers
        described = {
            name: answers[name] for name in wanted if name in answers and answers[name].state != DEAD
        }
        offsets = self._ask(described, committed, backoff, _coordinators(described)).answers
        return self._with_ends(
            {name: each for name, each in described.items() if name in offsets}, offsets, backoff
        )

    def plan_reset(
        self,
        name: str,
        target: Target,
        scope: Mapping[str, Sequence[int]] | None = None,
        *,
        may_be_new: bool = False,
    ) -> list[Reset]:
        """Return what a reset of the group's offsets would change; GroupActive while it has members.

        The scope is some partitions of each topic, () for all of them; None is all that is committed.
        """
        backoff = Backoff(QUESTION_S)
        self._check_inactive([name], backoff, may_be_new=may_be_new)
        offsets = self._ask([name], committed, backoff).complete()[name]
        partitions = sorted(offsets) if scope is None else self._partitions(scope)
        return plan(target, self._standings(partitions, offsets, target, backoff))

    def reset(self, name: str, resets: Iterable[Reset]) -> None:
        """Commit the offsets of `plan_reset`; GroupActive if a member has joined meanwhile."""
        new = {TopicPartition(each.topic, each.partition): each.new for each in resets}
        if new:
            self._ask([name], partial(commit, new), Backoff(QUESTION_S)).complete()

    def delete(self, names: Iterable[str]) -> None:
        """Delete groups and their offsets; none of them if one does not exist or has members."""
        wanted = _named(names)
        backoff = backoff_for(wanted)
        self._check_inactive(wanted, backoff)
        self._ask(wanted, delete, backoff).complete()

    def delete_offsets(self, name: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete committed offsets of a group; ClientError while its members are subscribed to the topic."""
        self._ask([name], partial(delete_offsets, list(partitions)), Backoff(QUESTION_S)).complete()

    def check_inactive(self, names: Iterable[str], *, may_be_new: bool = False) -> None:
        """Raise GroupActive if a group has members, NoSuchGroup if it does not exist and may not be new."""
        wanted = _named(names)
        self._check_inactive(wanted, backoff_for(wanted), may_be_new=may_be_new)

    def _ask(
        self,
        names: Iterable[str],
        ask: Ask[Answer],
        backoff: Backoff,
        known: Mapping[str, Node] | None = None,
    ) -> Answers[str, Answer]:
        return ask_coordinators(self._brokers, names, ask, backoff, known)

    def _check_inactive(self, names: Iterable[str], backoff: Backoff, *, may_be_new: bool = False) -> None:
        wanted = _named(names)
        described = (
            self._ask(wanted, describe, backoff).complete() if may_be_new else self._existing(wanted, backoff)
        )
        for name, found in described.items():
            if found.members:
                raise GroupActive(name, len(found.members))

    def _existing(self, names: Sequence[str], backoff: Backoff) -> dict[str, Described]:
        described = self._ask(names, describe, backoff).complete()
        for name in names:
            if described[name].state == DEAD:
                raise NoSuchGroup(name)
        return {name: described[name] for name in names}

    def _with_ends(
        self, described: Mapping[str, Described], offsets: Mapping[str, Offsets], backoff: Backoff
    ) -> list[Group]:
        partitions = {
            partition for name, found in described.items() for partition in (*offsets[name], *owners(found))
        }
        left_s = max(LEFT_S, backoff.left_s)
        ends = read_offsets(
            self._brokers, partitions, LATEST, Backoff(left_s, retries_s=min(left_s, PARTIAL_S))
        )
        return [group(found, offsets[name], ends.answers) for name, found in described.items()]

    def _standings(
        self, partitions: Sequence[TopicPartition], offsets: Offsets, target: Target, backoff: Backoff
    ) -> Iterator[Standing]:
        starts = read_offsets(self._brokers, partitions, EARLIEST, backoff).complete()
        ends = read_offsets(self._brokers, partitions, LATEST, backoff).complete()
        times: Mapping[TopicPartition, int | None] = {}
        if isinstance(target, ToTime):
            times = read_offsets(self._brokers, partitions, target.time_ms, backoff).complete()
        for partition in partitions:
            start, end, offset = starts[partition], ends[partition], offsets.get(partition)
            if start is None or end is None:
                raise ClientError(f"{partition} is not there")
            yield Standing(
                partition=partition, committed=offset, start=start, end=end, at_time=times.get(partition)
            )

    def _partitions(self, scope: Mapping[str, Sequence[int]]) -> list[TopicPartition]:
        """Return the partitions in `scope`; NoSuchTopic or ClientError if one does not exist."""
        there = self._brokers.partitions(scope)
        partitions = []
        for topic, wanted in scope.items():
            if not there.get(topic):
                raise NoSuchTopic(topic)
            for index in wanted:
                if index not in there[topic]:
                    raise ClientError(f"{topic} has no partition {index}, only 0 to {max(there[topic])}")
            partitions += [TopicPartition(topic, index) for index in sorted(set(wanted) or there[topic])]
        return partitions


def _named(names: Iterable[str]) -> list[str]:
    asked = list(names)
    for name in asked:
        if not isinstance(name, str) or name.encode(errors="ignore").decode() != name:
            raise BadSetting(f"a group is named by a str, not by {name!r:.80}")
    wanted = list(dict.fromkeys(asked))
    if "" in wanted:
        raise ClientError("a group without a name cannot be asked for")
    return wanted


def _coordinators(described: Mapping[str, Described]) -> dict[str, Node]:
    at = {name: found.coordinator for name, found in described.items()}
    return {name: Node(each.id, each.host, each.port) for name, each in at.items()}
