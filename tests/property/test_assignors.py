"""Any group, whatever its members owned before: everything is read once, evenly, by whoever had it."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.coordinators.group.assignors import (
    ASSIGNORS,
    Assignment,
    Assignor,
    AssignorMember,
    assign_range,
    assign_uniform,
)

EXAMPLES = 20 * int(os.environ.get("HEADRACE_EXAMPLES", "3"))
Group = dict[str, AssignorMember]
Partitions = dict[bytes, int]
TOPICS = [bytes([number]) * 16 for number in range(4)]
DELETED = b"gone".ljust(16)

member_ids = st.sampled_from([f"m{number}" for number in range(6)])
instance_ids = st.none() | st.sampled_from(["i1", "i2", "i3"])
counts = st.fixed_dictionaries({topic: st.integers(0, 5) for topic in TOPICS})
subscriptions = st.frozensets(st.sampled_from(TOPICS))
# Whatever a group may have come from: topics deleted, subscriptions changed, one partition with two owners.
histories = st.dictionaries(
    st.sampled_from([*TOPICS, DELETED]), st.frozensets(st.integers(0, 7), min_size=1, max_size=5)
)
mixed = st.dictionaries(
    member_ids, st.builds(AssignorMember, subscriptions, histories, instance_ids), min_size=1
)
alike = st.builds(
    lambda topics, group: {name: member._replace(topics=topics) for name, member in group.items()},
    subscriptions,
    mixed,
)
groups = mixed | alike
assignors = pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=ASSIGNORS)
searched = settings(max_examples=EXAMPLES, deadline=None)


def pairs(assignment: Assignment) -> set[tuple[bytes, int]]:
    return {(topic, partition) for topic, held in assignment.items() for partition in held}


def owning(group: Group, assigned: Mapping[str, Assignment]) -> Group:
    return {name: group[name]._replace(owned=assigned[name]) for name in group}


def total(group: Group, partitions: Partitions) -> Counter[tuple[bytes, int]]:
    topics = frozenset[bytes]().union(*(member.topics for member in group.values()))
    return Counter((topic, number) for topic in topics for number in range(partitions[topic]))


def loads(assigned: Mapping[str, Assignment]) -> list[int]:
    return [len(pairs(assigned[name])) for name in sorted(assigned)]


def spread(assigned: Mapping[str, Assignment]) -> int:
    return max(loads(assigned)) - min(loads(assigned))


def valid(group: Group, partitions: Partitions) -> dict[str, set[tuple[bytes, int]]]:
    """What members own that they could go on owning; of two owners, the first by name."""
    left, mine = set(total(group, partitions)), {}
    for name in sorted(group):
        mine[name] = {pair for pair in pairs(group[name].owned) & left if pair[0] in group[name].topics}
        left -= mine[name]
    return mine


@assignors
@searched
@given(groups, counts)
def test_every_partition_has_one_owner_who_subscribes_to_it(
    assign: Assignor, group: Group, partitions: Partitions
) -> None:
    assigned = assign(group, partitions)

    assert assigned.keys() == group.keys()
    assert all(assigned[name].keys() <= member.topics for name, member in group.items())
    assert all(held for assignment in assigned.values() for held in assignment.values())
    owners = Counter(pair for assignment in assigned.values() for pair in pairs(assignment))
    assert owners == total(group, partitions)


@assignors
@searched
@given(groups, counts, st.data())
def test_the_order_in_which_members_and_topics_are_given_does_not_matter(
    assign: Assignor, group: Group, partitions: Partitions, data: st.DataObject
) -> None:
    reordered = {
        name: group[name]._replace(owned=dict(reversed(list(group[name].owned.items()))))
        for name in data.draw(st.permutations(list(group)))
    }
    assert assign(reordered, dict(reversed(partitions.items()))) == assign(group, partitions)


@assignors
@searched
@given(groups, counts)
def test_an_assignment_that_is_asked_for_again_is_the_same(
    assign: Assignor, group: Group, partitions: Partitions
) -> None:
    assigned = assign(group, partitions)
    assert assign(owning(group, assigned), partitions) == assigned


@searched
@given(alike, counts)
def test_members_with_the_same_topics_differ_by_one_partition_and_keep_all_that_this_allows(
    group: Group, partitions: Partitions
) -> None:
    assigned = assign_uniform(group, partitions)
    assert spread(assigned) <= 1

    before = valid(group, partitions)
    least, extra = divmod(total(group, partitions).total(), len(group))
    beyond = sum(len(mine) > least for mine in before.values())
    possible = sum(min(len(mine), least) for mine in before.values()) + min(extra, beyond)
    assert sum(len(pairs(assigned[name]) & before[name]) for name in group) == possible


@searched
@given(alike, counts, st.sampled_from(["a", "m2x", "z"]))
def test_who_joins_members_with_the_same_topics_takes_from_them_and_nothing_else_moves(
    group: Group, partitions: Partitions, newcomer: str
) -> None:
    before = assign_uniform(group, partitions)
    topics = next(iter(group.values())).topics
    grown = owning(group, before) | {newcomer: AssignorMember(topics, {})}

    after = assign_uniform(grown, partitions)

    assert all(pairs(after[name]) <= pairs(before[name]) for name in group)


@searched
@given(alike.filter(lambda group: len(group) > 1), counts, st.data())
def test_when_one_of_members_with_the_same_topics_leaves_only_its_partitions_move(
    group: Group, partitions: Partitions, data: st.DataObject
) -> None:
    before = assign_uniform(group, partitions)
    left = owning(group, before)
    del left[data.draw(st.sampled_from(sorted(group)))]

    after = assign_uniform(left, partitions)

    assert all(pairs(after[name]) >= pairs(before[name]) for name in left)


@searched
@given(mixed, counts)
def test_no_assignment_of_mixed_subscriptions_is_more_even(group: Group, partitions: Partitions) -> None:
    reachable = {(0,) * len(group)}  # every combination of loads, however the partitions are given out
    for topic, _ in total(group, partitions):
        takers = [place for place, name in enumerate(sorted(group)) if topic in group[name].topics]
        reachable = {(*at[:place], at[place] + 1, *at[place + 1 :]) for at in reachable for place in takers}

    best = min(sum(load**2 for load in at) for at in reachable)
    assert sum(load**2 for load in loads(assign_uniform(group, partitions))) == best


@searched
@given(groups, counts)
def test_range_cuts_every_topic_into_runs_that_differ_by_one_the_longer_first(
    group: Group, partitions: Partitions
) -> None:
    assigned = assign_range(group, partitions)
    ranked = sorted(
        group, key=lambda name: (group[name].instance_id is None, group[name].instance_id or "", name)
    )
    for topic, count in partitions.items():
        runs = [sorted(assigned[name].get(topic, ())) for name in ranked if topic in group[name].topics]
        lengths = [len(run) for run in runs]
        assert [number for run in runs for number in run] == list(range(count if runs else 0))
        assert lengths == sorted(lengths, reverse=True)
        assert not lengths or lengths[0] - lengths[-1] <= 1


@searched
@given(alike, st.integers(0, 9))
def test_range_gives_each_member_the_same_numbers_of_topics_with_as_many_partitions(
    group: Group, count: int
) -> None:
    for assignment in assign_range(group, dict.fromkeys(TOPICS, count)).values():
        assert len(set(assignment.values())) <= 1


@searched
@given(
    st.dictionaries(st.sampled_from(["i1", "i2", "i3"]), subscriptions, min_size=1),
    counts,
    st.permutations("abc"),
)
def test_range_gives_a_static_member_the_same_under_any_member_id(
    static: dict[str, frozenset[bytes]], partitions: Partitions, new_ids: list[str]
) -> None:
    def by_instance(member_ids: list[str]) -> dict[str, Assignment]:
        name_of = dict(zip(static, member_ids, strict=False))
        group = {name_of[i]: AssignorMember(topics, {}, instance_id=i) for i, topics in static.items()}
        assigned = assign_range(group, partitions)
        return {instance_id: assigned[name_of[instance_id]] for instance_id in static}

    assert by_instance(new_ids) == by_instance(["a", "b", "c"])


PROGRAM = """
from headrace.coordinators.group.assignors import ASSIGNORS, AssignorMember
topics = [bytes([number]) * 16 for number in range(9)]
mixed = {f"m{i}": AssignorMember(frozenset(topics[i % 3 : 3 + i]), {}) for i in range(7)}
alike = {name: member._replace(topics=frozenset(topics)) for name, member in mixed.items()}
for group in (mixed, alike):
    for assign in ASSIGNORS.values():
        for name, mine in assign(group, dict.fromkeys(topics, 5)).items():
            print(name, sorted((topic, sorted(held)) for topic, held in mine.items()))
"""


def test_processes_that_hash_differently_assign_alike() -> None:
    def output(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        return subprocess.check_output(
            [sys.executable, "-c", PROGRAM], env=environment, text=True, timeout=60
        )

    first, *others = [output(hash_seed) for hash_seed in "123"]
    assert len(first.splitlines()) == 2 * len(ASSIGNORS) * 7
    assert others == [first, first]
