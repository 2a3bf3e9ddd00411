"""The decisions of Kafka's StandardAuthorizer, rule by rule."""

from collections.abc import Iterable

import pytest

from headrace.security.acl_authorizer import MAX_CACHED_NAME, AclAuthorizer, parse_super_users
from headrace.security.acl_index import AclIndex, Permissions, Subject
from headrace.security.acls import AclEntry, PatternType, PermissionType, ResourcePattern
from headrace.security.authorization import CLUSTER_NAME, OPERATIONS, Operation, ResourceType
from headrace.security.principals import ANONYMOUS, Principal

ALICE, BOB = Principal("alice"), Principal("bob")
HOST, OTHER_HOST = "10.0.0.1", "10.0.0.2"
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
ORDERS = ResourcePattern(TOPIC, "orders")
EVERY_TOPIC = ResourcePattern(TOPIC, "*")
Acls = dict[ResourcePattern, list[AclEntry]]


def prefixed(name: str, resource_type: ResourceType = TOPIC) -> ResourcePattern:
    return ResourcePattern(resource_type, name, PatternType.PREFIXED)


def allow(operation: Operation, principal: str = "User:alice", host: str = "*") -> AclEntry:
    return AclEntry(principal, host, operation, PermissionType.ALLOW)


def deny(operation: Operation, principal: str = "User:alice", host: str = "*") -> AclEntry:
    return AclEntry(principal, host, operation, PermissionType.DENY)


def may(
    acls: Acls | AclAuthorizer,
    operation: Operation,
    name: str = "orders",
    *,
    resource: ResourceType = TOPIC,
    principal: Principal = ALICE,
    host: str = HOST,
) -> bool:
    authorizer = acls if isinstance(acls, AclAuthorizer) else AclAuthorizer(AclIndex(acls))
    return authorizer.allows(principal, host, operation, resource, name)


def may_on_any(acls: Acls, operation: Operation, *, everyone: bool = False) -> bool:
    authorizer = AclAuthorizer(AclIndex(acls), allow_everyone_if_no_acl_found=everyone)
    return authorizer.may_on_any_resource(ALICE, HOST, operation, TOPIC)


def test_without_an_acl_nobody_may_do_anything() -> None:
    assert not may({}, Operation.READ)


def test_an_acl_allows_its_operation_on_its_resource_to_its_principal_only() -> None:
    acls = {ORDERS: [allow(Operation.READ)]}

    assert may(acls, Operation.READ)
    assert not may(acls, Operation.WRITE)
    assert not may(acls, Operation.READ, "orders-eu")
    assert not may(acls, Operation.READ, "order")
    assert not may(acls, Operation.READ, resource=GROUP)
    assert not may(acls, Operation.READ, principal=BOB)
    assert not may(acls, Operation.READ, principal=Principal("alice", type="Group"))


def test_a_prefixed_pattern_is_for_all_names_that_begin_with_it() -> None:
    acls = {prefixed("ord"): [allow(Operation.READ)]}

    assert may(acls, Operation.READ, "ord")
    assert may(acls, Operation.READ, "orders")
    assert not may(acls, Operation.READ, "or")
    assert not may(acls, Operation.READ, "xord")


def test_the_literal_asterisk_is_for_all_names() -> None:
    assert may({EVERY_TOPIC: [allow(Operation.READ)]}, Operation.READ, "whatever")
    assert not may({EVERY_TOPIC: [allow(Operation.READ)]}, Operation.READ, resource=GROUP)


def test_the_literal_asterisk_is_for_names_that_begin_with_an_asterisk_too() -> None:
    acls = {ResourcePattern(GROUP, "*"): [deny(Operation.READ)], prefixed("*", GROUP): [allow(Operation.ALL)]}

    assert may(acls, Operation.DELETE, "*x", resource=GROUP)
    assert not may(acls, Operation.READ, "*x", resource=GROUP)


def test_the_prefixed_asterisk_is_for_names_that_begin_with_an_asterisk() -> None:
    acls = {prefixed("*", GROUP): [allow(Operation.READ)]}

    assert may(acls, Operation.READ, "*x", resource=GROUP)
    assert not may(acls, Operation.READ, "x", resource=GROUP)


@pytest.mark.parametrize("pattern", [ORDERS, prefixed("o"), EVERY_TOPIC])
@pytest.mark.parametrize("allowing", [ORDERS, prefixed("orders"), EVERY_TOPIC])
@pytest.mark.parametrize("principal", ["User:alice", "User:*"])
@pytest.mark.parametrize("operation", [Operation.READ, Operation.ALL])
def test_deny_wins_over_allow_however_wide_either_is(
    pattern: ResourcePattern, allowing: ResourcePattern, principal: str, operation: Operation
) -> None:
    acls: Acls = {pattern: [deny(operation, principal)]}
    acls.setdefault(allowing, []).append(allow(Operation.ALL))

    assert not may(acls, Operation.READ)
    assert may(acls, Operation.WRITE) is (operation is not Operation.ALL)


def test_an_acl_may_be_for_one_host() -> None:
    acls = {ORDERS: [allow(Operation.READ, host=HOST)]}

    assert may(acls, Operation.READ, host=HOST)
    assert not may(acls, Operation.READ, host=OTHER_HOST)


def test_one_host_may_be_denied() -> None:
    acls = {ORDERS: [allow(Operation.READ), deny(Operation.READ, host=HOST)]}

    assert not may(acls, Operation.READ, host=HOST)
    assert may(acls, Operation.READ, host=OTHER_HOST)


@pytest.mark.parametrize("host", ["::1", "0:0:0:0:0:0:0:1"])
@pytest.mark.parametrize("client", ["::1", "0:0:0:0:0:0:0:1"])
def test_an_ipv6_address_may_be_written_in_kafkas_way_and_in_ours(host: str, client: str) -> None:
    assert may({ORDERS: [allow(Operation.READ, host=host)]}, Operation.READ, host=client)


def test_user_asterisk_is_everybody_of_whatever_type() -> None:
    acls = {ORDERS: [allow(Operation.READ, "User:*")]}

    assert may(acls, Operation.READ, principal=ANONYMOUS)
    assert may(acls, Operation.READ, principal=Principal("ops", type="Group"))


def test_an_asterisk_of_another_type_is_nobody_else() -> None:
    assert not may({ORDERS: [allow(Operation.READ, "Group:*")]}, Operation.READ)


@pytest.mark.parametrize("operation", Operation)
def test_all_allows_every_operation(operation: Operation) -> None:
    assert may({ORDERS: [allow(Operation.ALL)]}, operation)


@pytest.mark.parametrize("operation", Operation)
def test_allow_implies_describe_and_describe_configs_as_in_kafka(operation: Operation) -> None:
    describing = {Operation.ALL, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    configuring = {Operation.ALL, Operation.ALTER_CONFIGS}
    acls = {ORDERS: [allow(operation)]}

    assert may(acls, Operation.DESCRIBE) is (operation in {*describing, Operation.DESCRIBE})
    assert may(acls, Operation.DESCRIBE_CONFIGS) is (operation in {*configuring, Operation.DESCRIBE_CONFIGS})


@pytest.mark.parametrize("operation", set(Operation) - {Operation.ALL, Operation.DESCRIBE})
def test_deny_implies_nothing(operation: Operation) -> None:
    acls = {ORDERS: [allow(Operation.ALL), deny(operation)]}

    assert may(acls, Operation.DESCRIBE)
    assert not may(acls, operation)


def test_what_is_implied_can_be_denied() -> None:
    acls = {ORDERS: [allow(Operation.READ), deny(Operation.DESCRIBE)]}

    assert may(acls, Operation.READ)
    assert not may(acls, Operation.DESCRIBE)


def test_a_super_user_may_do_what_is_denied() -> None:
    index = AclIndex({EVERY_TOPIC: [deny(Operation.ALL, "User:*")]})
    authorizer = AclAuthorizer(index, super_users=[ALICE])

    assert may(authorizer, Operation.READ)
    assert not may(authorizer, Operation.READ, principal=BOB)
    assert not may(authorizer, Operation.READ, principal=Principal("alice", type="Group"))
    assert authorizer.authorized_operations(ALICE, HOST, TOPIC, "orders") == bits(OPERATIONS[TOPIC])
    assert authorizer.may_on_any_resource(ALICE, HOST, Operation.WRITE, TOPIC)


def test_everyone_may_use_a_resource_without_acls_if_the_setting_says_so() -> None:
    index = AclIndex({ORDERS: [allow(Operation.READ, "User:bob")], prefixed("pay"): [deny(Operation.READ)]})
    authorizer = AclAuthorizer(index, allow_everyone_if_no_acl_found=True)

    assert may(authorizer, Operation.WRITE, "free")
    assert not may(authorizer, Operation.READ, "orders")
    assert not may(authorizer, Operation.WRITE, "payments")


def test_an_acl_for_all_resources_of_the_type_leaves_none_without_acls() -> None:
    index = AclIndex({EVERY_TOPIC: [allow(Operation.READ, "User:bob")]})
    authorizer = AclAuthorizer(index, allow_everyone_if_no_acl_found=True)

    assert not may(authorizer, Operation.READ, "free")
    assert may(authorizer, Operation.READ, "free", resource=GROUP)


def bits(operations: Iterable[Operation]) -> int:
    return sum(1 << operation for operation in operations)


def test_authorized_operations_are_those_that_exist_and_are_allowed() -> None:
    index = AclIndex(
        {
            ORDERS: [allow(Operation.ALL), deny(Operation.DELETE)],
            ResourcePattern(CLUSTER, CLUSTER_NAME): [allow(Operation.ALTER), allow(Operation.READ)],
        }
    )
    authorizer = AclAuthorizer(index)

    def authorized(resource: ResourceType, name: str) -> int:
        return authorizer.authorized_operations(ALICE, HOST, resource, name)

    assert authorized(TOPIC, "orders") == bits(set(OPERATIONS[TOPIC]) - {Operation.DELETE})
    assert authorized(CLUSTER, CLUSTER_NAME) == bits({Operation.ALTER, Operation.DESCRIBE})
    assert authorized(GROUP, "g") == 0


def test_a_change_of_the_acls_takes_effect_at_once() -> None:
    index = AclIndex({ORDERS: [allow(Operation.READ)]})
    authorizer = AclAuthorizer(index)
    assert may(authorizer, Operation.READ)
    assert authorizer.may_on_any_resource(ALICE, HOST, Operation.READ, TOPIC)

    index.replace(ORDERS, [])

    assert not may(authorizer, Operation.READ)
    assert not authorizer.may_on_any_resource(ALICE, HOST, Operation.READ, TOPIC)


class CountingIndex(AclIndex):
    """Counts how often ACLs are searched."""

    searches = 0

    def permissions(
        self, subjects: Iterable[Subject], resource_type: ResourceType, name: str
    ) -> Permissions | None:
        self.searches += 1
        return super().permissions(tuple(subjects), resource_type, name)


def test_a_decision_is_made_once_for_all_operations() -> None:
    index = CountingIndex({ORDERS: [allow(Operation.READ)]})
    authorizer = AclAuthorizer(index)

    for _ in range(3):
        may(authorizer, Operation.READ)
        may(authorizer, Operation.WRITE)
        authorizer.authorized_operations(ALICE, HOST, TOPIC, "orders")

    assert index.searches == 1


def test_decisions_in_use_stay_cached_while_others_come_and_go() -> None:
    index = CountingIndex({ORDERS: [allow(Operation.READ)]})
    authorizer = AclAuthorizer(index, max_cached_decisions=20)

    for number in range(100):
        may(authorizer, Operation.READ, f"topic-{number}")
        assert authorizer._decided.cache_info().currsize <= 20
        if number % 5 == 0:
            assert may(authorizer, Operation.READ)

    assert index.searches == 100 + 1


def test_decisions_that_nobody_uses_are_dropped() -> None:
    index = CountingIndex({})
    authorizer = AclAuthorizer(index, max_cached_decisions=20)

    for number in (*range(21), 0):
        may(authorizer, Operation.READ, f"topic-{number}")

    assert index.searches == 22


def test_names_longer_than_those_of_topics_are_not_cached() -> None:
    index = CountingIndex({})
    authorizer = AclAuthorizer(index)
    longest = "g" * MAX_CACHED_NAME

    for name in (longest, longest, longest + "g", longest + "g"):
        may(authorizer, Operation.READ, name, resource=GROUP)

    assert index.searches == 3


def test_principals_and_hosts_without_acls_of_their_own_share_a_view() -> None:
    acls = {ORDERS: [allow(Operation.READ, "User:*"), allow(Operation.WRITE, host=OTHER_HOST)]}
    authorizer = AclAuthorizer(AclIndex(acls), super_users=[Principal("root"), Principal("admin")])

    assert authorizer.view(BOB, HOST) == authorizer.view(ANONYMOUS, "10.9.9.9")
    assert authorizer.view(ALICE, HOST) != authorizer.view(BOB, HOST)
    assert authorizer.view(ALICE, OTHER_HOST) != authorizer.view(ALICE, HOST)
    assert authorizer.view(Principal("root"), HOST) == authorizer.view(Principal("admin"), OTHER_HOST)
    assert authorizer.view(Principal("root"), HOST) != authorizer.view(BOB, HOST)


def test_a_change_of_the_acls_changes_the_view() -> None:
    index = AclIndex({ORDERS: [allow(Operation.READ, "User:*")]})
    authorizer = AclAuthorizer(index)
    before = authorizer.view(BOB, HOST)

    index.replace(ORDERS, [])

    assert authorizer.view(BOB, HOST) != before


@pytest.mark.parametrize("pattern", [ORDERS, prefixed("ord"), EVERY_TOPIC])
@pytest.mark.parametrize("operation", [Operation.WRITE, Operation.ALL])
def test_one_acl_is_enough_to_do_something_somewhere(pattern: ResourcePattern, operation: Operation) -> None:
    acls = {pattern: [allow(operation)]}

    assert may_on_any(acls, Operation.WRITE)
    assert may_on_any(acls, Operation.READ) is (operation is Operation.ALL)


@pytest.mark.parametrize(
    ("allowed", "denied", "expected"),
    [
        (ORDERS, ORDERS, False),
        (ORDERS, prefixed("orders"), False),
        (ORDERS, prefixed("ord"), False),
        (ORDERS, prefixed("orders-eu"), True),
        (ORDERS, ResourcePattern(TOPIC, "other"), True),
        (ORDERS, EVERY_TOPIC, False),
        (prefixed("ord"), ORDERS, True),
        (prefixed("ord"), prefixed("ord"), False),
        (prefixed("ord"), prefixed("o"), False),
        (prefixed("ord"), prefixed("orders"), True),
        (prefixed("ord"), ResourcePattern(TOPIC, "ord"), True),
        (prefixed("ord"), EVERY_TOPIC, False),
        (EVERY_TOPIC, prefixed("o"), True),
        (EVERY_TOPIC, EVERY_TOPIC, False),
    ],
)
def test_a_denial_counts_if_it_covers_all_that_is_allowed(
    allowed: ResourcePattern, denied: ResourcePattern, expected: bool
) -> None:
    acls: Acls = {allowed: [allow(Operation.WRITE)]}
    acls.setdefault(denied, []).append(deny(Operation.WRITE))

    assert may_on_any(acls, Operation.WRITE) is expected


def test_a_denied_prefix_does_not_cover_all_resources_even_if_it_is_an_asterisk() -> None:
    """The resource that is asked about first is denied, so that the answer depends on the patterns."""
    denied = {prefixed("*"): [deny(Operation.WRITE)], prefixed("hard"): [deny(Operation.WRITE)]}

    assert may_on_any({EVERY_TOPIC: [allow(Operation.WRITE)], **denied}, Operation.WRITE)


def test_a_denial_of_another_operation_or_to_somebody_else_does_not_count() -> None:
    others = [deny(Operation.READ), deny(Operation.WRITE, "User:bob"), deny(Operation.WRITE, host=OTHER_HOST)]

    assert may_on_any({ORDERS: [allow(Operation.WRITE)], EVERY_TOPIC: others}, Operation.WRITE)


def test_everyone_may_do_something_somewhere_if_resources_without_acls_are_free() -> None:
    assert may_on_any({}, Operation.WRITE, everyone=True)
    assert may_on_any({ORDERS: [deny(Operation.WRITE)]}, Operation.WRITE, everyone=True)
    assert not may_on_any({EVERY_TOPIC: [deny(Operation.WRITE)]}, Operation.WRITE, everyone=True)


def test_super_users_are_separated_by_semicolons() -> None:
    assert parse_super_users("User:alice; User:CN=bob,OU=x ;;Group:ops") == {
        ALICE,
        Principal("CN=bob,OU=x"),
        Principal("ops", type="Group"),
    }
    assert parse_super_users("") == frozenset()
    with pytest.raises(ValueError, match="expected TYPE:NAME"):
        parse_super_users("alice")
