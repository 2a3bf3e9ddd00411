"""Consumer groups of a cluster: what `headrace group` does.

GroupAdmin("127.0.0.1:9092").describe(["billing"])[0].total_lag
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from headrace.client.connection import live_brokers
from headrace.client.errors import (
    BadSetting,
    ClientError,
    GroupActive,
    NoSuchGroup,
    NoSuchTopic,
    Unreachable,
    check_reachable,
)
from headrace.client.groups.group import DEAD, Described, Group, GroupSummary, group, owners, summary
from headrace.client.groups.questions import MISSED_S, GroupQuestions, patience_for
from headrace.client.groups.reset import Reset, Standing, Target, ToTime, plan
from headrace.client.groups.talks import Offsets
from headrace.client.wire.leader_offsets import EARLIEST, LATEST, read_offsets
from headrace.client.wire.live_brokers import QUESTION_S, Node
from headrace.client.wire.settling import Patience, Settled
from headrace.protocol.ids import TopicPartition

LEFT_S: Final = 0.5  # for the ends of logs, however long the rest has taken

logger = logging.getLogger(__name__)

Key = TypeVar("Key")
Answer = TypeVar("Answer")


class Summaries(list[GroupSummary]):
    """Groups, and a sentence about each broker that has not said which it coordinates."""

    missing: tuple[str, ...] = ()


class GroupAdmin:
    """Consumer groups. Every call waits for its answer, or raises a ClientError; any thread may call.

    The cluster is asked anew each time, without librdkafka: that goes on asking coordinators and leaders that
    have moved, waits half a minute for a broker that is away, and has aborted a process that listed groups.
    """

    def __init__(self, bootstrap: str, options: Mapping[str, str] | None = None) -> None:
        """`options` are librdkafka's or Java's: what a secured cluster wants to know."""
        check_reachable(bootstrap)
        self._brokers = live_brokers(bootstrap, options or {})
        self._ask = GroupQuestions(self._brokers)
        self._told: tuple[str, ...] = ()  # which brokers have not answered, when it was last said

    def close(self) -> None:
        """Part from the brokers; not needed at the end of a process."""
        self._brokers.close()

    def list_groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> Summaries:
        """Every group that has a name, by it; only of these states and types if any are given.

        Groups whose coordinator does not answer are missing, and `missing` says which broker that is.
        """
        listing = self._ask.listed()
        if listing.missing and not listing.answered:
            raise Unreachable(f"no broker tells of its groups: {'; '.join(listing.missing)}")
        wanted = {
            name: each.node
            for name, each in sorted(listing.groups.items())
            if (not states or each.state in {*states, ""}) and (not types or each.type in {*types, ""})
        }
        described = self._ask.described(wanted, patience_for(wanted), wanted)
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
        self._tell(found.missing)
        return found

    def describe(self, names: Iterable[str]) -> list[Group]:
        """These groups with their members and offsets; NoSuchGroup if one of them is not there.

        Ends and lags are None in partitions whose leader does not answer.
        """
        wanted = _named(names)
        patience = patience_for(wanted)
        described = self._existing(wanted, patience)
        committed = _all(self._ask.committed(described, patience, _coordinators(described)))
        return self._with_ends(described, committed, patience)

    def describe_there(self, names: Iterable[str]) -> list[Group]:
        """Those of the groups that are there, and whose coordinators answer."""
        wanted = _named(names)
        patience = patience_for(wanted)
        answers = self._ask.described(wanted, patience).answers
        described = {
            name: answers[name] for name in wanted if name in answers and answers[name].state != DEAD
        }
        committed = self._ask.committed(described, patience, _coordinators(described)).answers
        return self._with_ends(
            {name: each for name, each in described.items() if name in committed}, committed, patience
        )

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
        patience = Patience(QUESTION_S)
        self._check_inactive([name], patience, may_be_new=may_be_new)
        committed = _all(self._ask.committed([name], patience))[name]
        places = sorted(committed) if scope is None else self._places(scope)
        return plan(target, self._standings(places, committed, target, patience))

    def reset(self, name: str, resets: Iterable[Reset]) -> None:
        """Commit what `plan_reset` has found; GroupActive if a member has come meanwhile."""
        new = {TopicPartition(each.topic, each.partition): each.new for each in resets}
        if new:
            _all(self._ask.commit(name, new, Patience(QUESTION_S)))

    def delete(self, names: Iterable[str]) -> None:
        """Delete groups and their offsets; none of them if one is not there or has members."""
        wanted = _named(names)
        patience = patience_for(wanted)
        self._check_inactive(wanted, patience)
        _all(self._ask.delete(wanted, patience))

    def delete_offsets(self, name: str, places: Iterable[TopicPartition]) -> None:
        """Forget what a group has committed for these; refused while its members read the topic."""
        _all(self._ask.forget(name, places, Patience(QUESTION_S)))

    def check_inactive(self, names: Iterable[str], *, may_be_new: bool = False) -> None:
        """GroupActive if one of them has members, NoSuchGroup if it is not there and has to be."""
        wanted = _named(names)
        self._check_inactive(wanted, patience_for(wanted), may_be_new=may_be_new)

    # -- asking --------------------------------------------------------------------------------

    def _check_inactive(self, names: Iterable[str], patience: Patience, *, may_be_new: bool = False) -> None:
        wanted = _named(names)
        described = (
            _all(self._ask.described(wanted, patience)) if may_be_new else self._existing(wanted, patience)
        )
        for name, found in described.items():
            if found.members:
                raise GroupActive(name, len(found.members))

    def _existing(self, names: Sequence[str], patience: Patience) -> dict[str, Described]:
        described = _all(self._ask.described(names, patience))
        for name in names:
            if described[name].state == DEAD:
                raise NoSuchGroup(name)
        return {name: described[name] for name in names}

    def _with_ends(
        self, described: Mapping[str, Described], committed: Mapping[str, Offsets], patience: Patience
    ) -> list[Group]:
        places = {place for name, found in described.items() for place in (*committed[name], *owners(found))}
        left_s = max(LEFT_S, patience.left_s)
        ends = read_offsets(self._brokers, places, LATEST, Patience(left_s, retries_s=min(left_s, MISSED_S)))
        return [group(found, committed[name], ends.answers) for name, found in described.items()]

    def _standings(
        self,
        places: Sequence[TopicPartition],
        committed: Mapping[TopicPartition, int],
        target: Target,
        patience: Patience,
    ) -> Iterator[Standing]:
        starts = _all(read_offsets(self._brokers, places, EARLIEST, patience))
        ends = _all(read_offsets(self._brokers, places, LATEST, patience))
        times: Mapping[TopicPartition, int | None] = {}
        if isinstance(target, ToTime):
            times = _all(read_offsets(self._brokers, places, target.time_ms, patience))
        for place in places:
            start, end, offset = starts[place], ends[place], committed.get(place)
            if start is None or end is None:
                raise ClientError(f"{place} is not there")
            yield Standing(place=place, committed=offset, start=start, end=end, at_time=times.get(place))

    def _places(self, scope: Mapping[str, Sequence[int]]) -> list[TopicPartition]:
        """The partitions in `scope`, if they are there."""
        there = self._brokers.partitions(scope)
        places = []
        for topic, wanted in scope.items():
            if not there.get(topic):
                raise NoSuchTopic(topic)
            for index in wanted:
                if index not in there[topic]:
                    raise ClientError(f"{topic} has no partition {index}, only 0 to {max(there[topic])}")
            places += [TopicPartition(topic, index) for index in sorted(set(wanted) or there[topic])]
        return places

    def _tell(self, missing: tuple[str, ...]) -> None:
        """Log who does not answer, when that changes."""
        if missing and missing != self._told:
            logger.warning("groups may be missing: %s", "; ".join(missing))
        self._told = missing


def _all(settled: Settled[Key, Answer]) -> dict[Key, Answer]:
    """The answers; Unreachable if one is missing."""
    for key, missing in settled.missing.items():
        raise Unreachable(missing.why if str(key) in missing.why else f"{key}: {missing.why}")
    return settled.answers


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
