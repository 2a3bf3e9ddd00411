from collections.abc import Iterable, Mapping

from headrace.coordinators.group.assignors import (
    ASSIGNORS,
    Assignment,
    AssignorMember,
    assign_range,
    assign_uniform,
)
from headrace.coordinators.group.assignors.heterogeneous import (
    PartitionCounts,
    balance_by_chains,
    balance_directly,
)

A, B, C = (bytes([letter]) * 16 for letter in b"ABC")


def some(**partitions: Iterable[int]) -> Assignment:
    return {name.encode() * 16: frozenset(counts) for name, counts in partitions.items()}


def member(topics: str, owned: Assignment | None = None, **rest: str) -> AssignorMember:
    return AssignorMember(frozenset(letter.encode() * 16 for letter in topics), owned or {}, **rest)


def sizes(assigned: Mapping[str, Assignment]) -> list[int]:
    return [sum(map(len, assigned[member_id].values())) for member_id in sorted(assigned)]


def test_a_member_that_names_no_assignor_gets_the_uniform_one() -> None:
    assert list(ASSIGNORS) == ["uniform", "range"]
    assert next(iter(ASSIGNORS.values())) is assign_uniform


def test_a_group_without_members_has_no_assignment() -> None:
    for assign in ASSIGNORS.values():
        assert assign({}, {A: 3}) == {}


def test_members_without_topics_get_an_empty_assignment() -> None:
    for assign in ASSIGNORS.values():
        assert assign({"m1": member(""), "m2": member("", some(A=[0]))}, {}) == {"m1": {}, "m2": {}}


def test_a_member_for_whom_nothing_is_left_gets_an_empty_assignment() -> None:
    for assign in ASSIGNORS.values():
        assigned = assign({"m1": member("A"), "m2": member("A"), "m3": member("A")}, {A: 2})
        assert assigned == {"m1": some(A=[0]), "m2": some(A=[1]), "m3": {}}


def test_range_gives_neighbours_and_the_extra_ones_to_the_first() -> None:
    assigned = assign_range({"m3": member("A"), "m1": member("A"), "m2": member("A")}, {A: 7})
    assert assigned == {"m1": some(A=[0, 1, 2]), "m2": some(A=[3, 4]), "m3": some(A=[5, 6])}


def test_range_gives_the_same_counts_of_topics_that_are_alike() -> None:
    assigned = assign_range({"m1": member("AB"), "m2": member("AB")}, {A: 3, B: 3})
    assert assigned == {"m1": some(A=[0, 1], B=[0, 1]), "m2": some(A=[2], B=[2])}


def test_range_cuts_a_topic_among_its_own_subscribers_only() -> None:
    assigned = assign_range({"m1": member("AB"), "m2": member("B"), "m3": member("BC")}, {A: 2, B: 3, C: 2})
    assert assigned == {"m1": some(A=[0, 1], B=[0]), "m2": some(B=[1]), "m3": some(B=[2], C=[0, 1])}


def test_range_puts_static_members_first_in_the_order_of_their_instance_ids() -> None:
    group = {"m1": member("A"), "m2": member("A", instance_id="i2"), "m3": member("A", instance_id="i1")}
    assert assign_range(group, {A: 3}) == {"m3": some(A=[0]), "m2": some(A=[1]), "m1": some(A=[2])}


def test_range_forgets_what_members_owned() -> None:
    group = {"m1": member("A", some(A=[1])), "m2": member("A", some(A=[0]))}
    assert assign_range(group, {A: 2}) == {"m1": some(A=[0]), "m2": some(A=[1])}


def test_uniform_balances_over_all_topics_together() -> None:
    group = {"m1": member("ABC"), "m2": member("ABC")}
    assert sizes(assign_uniform(group, {A: 1, B: 1, C: 1})) == [2, 1]
    assert sizes(assign_range(group, {A: 1, B: 1, C: 1})) == [3, 0]


def test_uniform_changes_nothing_that_is_balanced() -> None:
    group = {"m1": member("AB", some(A=[1])), "m2": member("AB", some(A=[0], B=[0]))}
    assert assign_uniform(group, {A: 2, B: 1}) == {"m1": some(A=[1]), "m2": some(A=[0], B=[0])}


def test_uniform_gives_a_newcomer_what_others_have_too_much_of() -> None:
    group = {"m1": member("A", some(A=[0, 2, 4])), "m2": member("A", some(A=[1, 3])), "m3": member("A")}
    assigned = assign_uniform(group, {A: 5})
    assert assigned == {"m1": some(A=[0, 2]), "m2": some(A=[1, 3]), "m3": some(A=[4])}


def test_uniform_gives_only_the_partitions_of_a_member_that_left() -> None:
    group = {"m2": member("A", some(A=[1, 4])), "m3": member("A", some(A=[2, 5]))}
    assert assign_uniform(group, {A: 6}) == {"m2": some(A=[0, 1, 4]), "m3": some(A=[2, 3, 5])}


def test_uniform_hands_out_partitions_that_were_added_and_topics_that_are_new() -> None:
    group = {"m1": member("AB", some(A=[0])), "m2": member("AB", some(A=[1]))}
    assert assign_uniform(group, {A: 3, B: 1}) == {"m1": some(A=[0, 2]), "m2": some(A=[1], B=[0])}


def test_uniform_takes_away_topics_that_are_gone_or_no_longer_subscribed_to() -> None:
    group = {"m1": member("B", some(A=[0, 1])), "m2": member("B", some(C=[0], B=[0]))}
    assert assign_uniform(group, {A: 2, B: 2}) == {"m1": some(B=[1]), "m2": some(B=[0])}


def test_uniform_settles_who_has_a_partition_that_two_members_own() -> None:
    group = {"m2": member("A", some(A=[0, 1])), "m1": member("A", some(A=[0]))}
    assert assign_uniform(group, {A: 2}) == {"m1": some(A=[0]), "m2": some(A=[1])}


def test_uniform_leaves_partitions_that_do_not_exist_to_nobody() -> None:
    for other in ("A", "AB"):
        assigned = assign_uniform({"m1": member("A", some(A=[0, 9])), "m2": member(other)}, {A: 2, B: 0})
        assert assigned == {"m1": some(A=[0]), "m2": some(A=[1])}


def test_uniform_gives_less_of_a_shared_topic_to_a_member_that_has_one_for_itself() -> None:
    assert assign_uniform({"m1": member("AB"), "m2": member("B")}, {A: 3, B: 3}) == {
        "m1": some(A=[0, 1, 2]),
        "m2": some(B=[0, 1, 2]),
    }


def test_uniform_with_mixed_subscriptions_changes_nothing_that_is_balanced() -> None:
    group = {"m1": member("AB", some(A=[0, 1], B=[2])), "m2": member("B", some(B=[0, 1]))}
    assert assign_uniform(group, {A: 2, B: 3}) == {name: known.owned for name, known in group.items()}


def test_uniform_with_mixed_subscriptions_gives_a_newcomer_only_what_it_subscribes_to() -> None:
    group = {"m1": member("AB", some(A=[0, 1], B=[0, 1, 2, 3])), "m2": member("B")}
    assert assign_uniform(group, {A: 2, B: 4}) == {"m1": some(A=[0, 1], B=[0]), "m2": some(B=[1, 2, 3])}


def test_uniform_evens_out_members_that_share_no_topic() -> None:
    group = {
        "m1": member("A", some(A=[0])),
        "m2": member("AB", some(A=[1, 2])),
        "m3": member("B", some(B=[0, 1, 2])),
    }
    assigned = assign_uniform(group, {A: 3, B: 3})
    assert assigned == {"m1": some(A=[0, 2]), "m2": some(A=[1], B=[2]), "m3": some(B=[0, 1])}


def counts_of(**owned: Assignment) -> PartitionCounts:
    """The counts of a group whose members subscribe to the topics that they are named for."""
    return PartitionCounts([member(topics, mine) for topics, mine in owned.items()], list(owned.values()))


def test_a_new_partition_goes_to_the_least_loaded_subscriber_at_that_time() -> None:
    counts = counts_of(A=some(A=[0]), AB={}, B={})
    for expected in (1, 0, 1):
        assert counts.least_loaded(A) == expected
        counts.add(A, expected)
    assert counts.loads == [2, 2, 0]


def test_levelling_takes_from_the_most_loaded_and_from_nobody_else() -> None:
    counts = counts_of(A=some(A=range(3)), AB=some(A=range(3, 6), B=range(3)), B={})
    balance_directly(counts)
    assert counts.loads == [3, 3, 3]
    assert counts.owners == {A: {0: 3, 1: 3}, B: {2: 3}}


def test_chains_end_when_their_budget_is_used_up_and_lose_nothing() -> None:
    counts = counts_of(A=some(A=[0]), AB=some(A=[1, 2]), B=some(B=[0, 1, 2]))
    balance_by_chains(counts, max_visits=0)
    assert counts.loads == [1, 2, 3]
    balance_by_chains(counts, max_visits=1)
    assert counts.loads == [2, 2, 2]
