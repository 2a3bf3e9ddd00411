"""Any ACLs, changed in any way: the index decides, and finds, what a loop over all ACLs does."""

import os
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.security.acl_authorizer import AclAuthorizer
from headrace.security.acl_index import AclIndex
from headrace.security.acls import (
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from headrace.security.authorization import OPERATIONS, Action, Operation, ResourceType
from headrace.security.principals import Principal
from oracles.naive_acls import NaiveAuthorizer

EXAMPLES = 20 * int(os.environ.get("HEADRACE_EXAMPLES", "5"))
# Few values of everything, so that rules meet: names are prefixes of each other.
PRINCIPALS = [Principal("alice"), Principal("bob"), Principal("bob", type="Group")]
HOSTS = ["10.0.0.1", "10.0.0.2", "::1"]
NAMES = ["a", "ab", "abc", "abd", "b", "hardcode", "hard", "*a"]
TYPES = [ResourceType.TOPIC, ResourceType.GROUP]

operations = st.sampled_from(Operation)
principals = st.sampled_from(PRINCIPALS)
hosts = st.sampled_from(HOSTS)
patterns = st.builds(
    ResourcePattern,
    st.sampled_from(TYPES),
    st.sampled_from([*NAMES, "*"]),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
)
entries = st.builds(
    AclEntry,
    st.sampled_from([*map(str, PRINCIPALS), "User:*"]),
    st.sampled_from([*HOSTS, "*"]),
    operations,
    st.sampled_from(PermissionType),
)
changes = st.lists(st.tuples(patterns, st.sets(entries, max_size=4)), max_size=12)
actions = st.builds(Action, operations, st.sampled_from(TYPES), st.sampled_from(NAMES))
filters = st.builds(
    AclFilter,
    st.none() | st.sampled_from(TYPES),
    st.none() | st.sampled_from([*NAMES, "*"]),
    st.sampled_from(PatternType),
    st.none() | st.sampled_from(["User:alice", "User:*", "alice"]),
    st.none() | st.sampled_from(["10.0.0.1", "*"]),
    st.none() | operations,
    st.none() | st.sampled_from(PermissionType),
)


class Cluster(NamedTuple):
    changes: list[tuple[ResourcePattern, set[AclEntry]]]
    super_users: set[Principal]
    allow_everyone: bool


clusters = st.builds(Cluster, changes, st.sets(principals, max_size=1), st.booleans())


def bindings(acls: dict[ResourcePattern, set[AclEntry]]) -> list[AclBinding]:
    return [AclBinding(pattern, entry) for pattern, some in acls.items() for entry in some]


@settings(max_examples=EXAMPLES)
@given(clusters, principals, hosts, st.lists(actions, min_size=1))
def test_after_every_change_decisions_are_those_of_a_loop_over_all_acls(
    cluster: Cluster, principal: Principal, host: str, actions: list[Action]
) -> None:
    index = AclIndex()
    changes, super_users, everyone = cluster
    authorizer = AclAuthorizer(index, super_users=super_users, allow_everyone_if_no_acl_found=everyone)
    acls: dict[ResourcePattern, set[AclEntry]] = {}
    for pattern, some in changes:
        index.replace(pattern, some)
        acls[pattern] = some
        naive = NaiveAuthorizer(bindings(acls), super_users, allow_everyone=everyone)

        for action in actions:
            assert authorizer.allows(principal, host, *action) is naive.allows(principal, host, action)
        for operation, resource, name in actions:
            assert authorizer.may_on_any_resource(principal, host, operation, resource) is (
                naive.allows_on_any(principal, host, operation, resource)
            )
            assert authorizer.authorized_operations(principal, host, resource, name) == sum(
                1 << each
                for each in OPERATIONS[resource]
                if naive.allows(principal, host, Action(each, resource, name))
            )


@settings(max_examples=EXAMPLES)
@given(changes, filters)
def test_a_search_finds_what_its_filter_matches(
    changes: list[tuple[ResourcePattern, set[AclEntry]]], wanted: AclFilter
) -> None:
    index = AclIndex()
    for pattern, some in changes:
        index.replace(pattern, some)

    found = list(index.find(wanted))

    assert sorted(found) == sorted(filter(wanted.matches, bindings(dict(changes))))
    assert len(index) == len(bindings(dict(changes)))


@settings(max_examples=EXAMPLES)
@given(changes, changes)
def test_what_was_changed_into_other_acls_is_as_if_it_had_been_built_from_them(
    before: list[tuple[ResourcePattern, set[AclEntry]]], after: list[tuple[ResourcePattern, set[AclEntry]]]
) -> None:
    changed, built = AclIndex(dict(before)), AclIndex(dict(after))

    changed.replace_all(dict(after))

    assert {**vars(changed), "version": 0} == {**vars(built), "version": 0}


@settings(max_examples=EXAMPLES)
@given(clusters, st.tuples(principals, hosts), st.tuples(principals, hosts), st.lists(actions, min_size=1))
def test_principals_with_the_same_view_may_do_the_same(
    cluster: Cluster, one: tuple[Principal, str], other: tuple[Principal, str], actions: list[Action]
) -> None:
    authorizer = AclAuthorizer(
        AclIndex(dict(cluster.changes)),
        super_users=cluster.super_users,
        allow_everyone_if_no_acl_found=cluster.allow_everyone,
    )
    if authorizer.view(*one) == authorizer.view(*other):
        for action in actions:
            assert authorizer.allows(one[0], one[1], *action) is authorizer.allows(
                other[0], other[1], *action
            )
