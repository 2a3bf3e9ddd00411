from typing import Any

import pytest

from headrace.protocol.errors import ErrorCode
from headrace.security.acls import (
    AclBinding,
    AclEntry,
    AclFilter,
    InvalidAcl,
    PatternType,
    PermissionType,
    ResourcePattern,
    new_binding,
    new_filter,
)
from headrace.security.authorization import Operation, ResourceType

CREATION: dict[str, Any] = {
    "resource_type": 2,
    "resource_name": "orders",
    "pattern_type": 3,
    "principal": "User:alice",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
ALICE_READS = AclEntry("User:alice", "*", Operation.READ, PermissionType.ALLOW)


def topic(name: str, pattern_type: PatternType = PatternType.LITERAL) -> ResourcePattern:
    return ResourcePattern(ResourceType.TOPIC, name, pattern_type)


def test_the_numbers_of_a_request_become_an_acl() -> None:
    assert new_binding(**CREATION) == AclBinding(topic("orders"), ALICE_READS)


def test_an_acl_says_what_it_does() -> None:
    text = str(new_binding(**CREATION | {"pattern_type": 4}))

    assert text == "ALLOW User:alice READ from * on PREFIXED TOPIC 'orders'"


@pytest.mark.parametrize("pattern_type", [3, 4])
@pytest.mark.parametrize("resource_type", [2, 3, 5, 6, 7])
@pytest.mark.parametrize("operation", range(2, 16))
def test_any_operation_may_be_granted_on_any_type_as_in_kafka(
    resource_type: int, operation: int, pattern_type: int
) -> None:
    numbers = {"resource_type": resource_type, "operation": operation, "pattern_type": pattern_type}

    made = new_binding(**CREATION | numbers)

    assert (made.pattern.resource_type, made.entry.operation) == (resource_type, operation)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"resource_type": 0}, "resource type 0"),
        ({"resource_type": 1}, "resource type 1"),
        ({"resource_type": 8}, "resource type 8"),
        ({"pattern_type": 0}, "pattern type 0"),
        ({"pattern_type": 1}, "pattern type ANY"),
        ({"pattern_type": 2}, "pattern type MATCH"),
        ({"pattern_type": 5}, "pattern type 5"),
        ({"operation": 0}, "operation 0"),
        ({"operation": 1}, "operation 1"),
        ({"operation": 16}, "operation 16"),
        ({"permission_type": 0}, "permission type 0"),
        ({"permission_type": 1}, "permission type 1"),
        ({"permission_type": 4}, "permission type 4"),
        ({"resource_name": ""}, "empty resource name"),
        ({"resource_type": 4, "resource_name": "orders"}, "kafka-cluster"),
        ({"resource_type": 4, "resource_name": "*"}, "kafka-cluster"),
        ({"principal": "alice"}, "expected TYPE:NAME"),
        ({"principal": ""}, "expected TYPE:NAME"),
    ],
)
def test_an_invalid_acl_is_refused_with_the_reason(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidAcl, match=why) as refused:
        new_binding(**CREATION | wrong)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_the_cluster_has_one_name() -> None:
    made = new_binding(**CREATION | {"resource_type": 4, "resource_name": "kafka-cluster"})

    assert made.pattern == ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")


def test_a_filter_without_conditions_selects_everything() -> None:
    everything = new_filter(
        resource_type=1,
        resource_name=None,
        pattern_type=1,
        principal=None,
        host=None,
        operation=1,
        permission_type=1,
    )

    assert everything == AclFilter()
    assert everything.matches(new_binding(**CREATION))


@pytest.mark.parametrize("field", ["resource_type", "pattern_type", "operation", "permission_type"])
@pytest.mark.parametrize("number", [0, 99])
def test_a_filter_with_an_unknown_number_is_refused(field: str, number: int) -> None:
    with pytest.raises(InvalidAcl, match=f"{field.replace('_', ' ')} {number} "):
        new_filter(**CREATION | {field: number})


@pytest.mark.parametrize(
    ("wanted", "selected"),
    [
        (AclFilter(ResourceType.TOPIC), True),
        (AclFilter(ResourceType.GROUP), False),
        (AclFilter(principal="User:alice"), True),
        (AclFilter(principal="User:*"), False),
        (AclFilter(host="*"), True),
        (AclFilter(host="10.0.0.1"), False),
        (AclFilter(operation=Operation.READ), True),
        (AclFilter(operation=Operation.ALL), False),
        (AclFilter(permission_type=PermissionType.ALLOW), True),
        (AclFilter(permission_type=PermissionType.DENY), False),
    ],
)
def test_each_field_of_a_filter_is_a_condition(wanted: AclFilter, selected: bool) -> None:
    assert wanted.matches(AclBinding(topic("orders"), ALICE_READS)) is selected


@pytest.mark.parametrize(
    ("pattern_type", "selected"),
    [
        (PatternType.LITERAL, {topic("orders")}),
        (PatternType.PREFIXED, {topic("orders", PatternType.PREFIXED)}),
        (PatternType.ANY, {topic("orders"), topic("orders", PatternType.PREFIXED)}),
        (
            PatternType.MATCH,
            {
                topic("orders"),
                topic("*"),
                topic("orders", PatternType.PREFIXED),
                topic("ord", PatternType.PREFIXED),
            },
        ),
    ],
)
def test_the_pattern_type_of_a_filter_says_how_its_name_selects(
    pattern_type: PatternType, selected: set[ResourcePattern]
) -> None:
    patterns = [
        topic("orders"),
        topic("*"),
        topic("ord"),
        topic("orders-eu"),
        topic("orders", PatternType.PREFIXED),
        topic("ord", PatternType.PREFIXED),
        topic("orders-eu", PatternType.PREFIXED),
        topic("*", PatternType.PREFIXED),
    ]
    wanted = AclFilter(ResourceType.TOPIC, "orders", pattern_type)

    assert {pattern for pattern in patterns if wanted.matches_pattern(pattern)} == selected


def test_without_a_name_match_selects_every_pattern() -> None:
    wanted = AclFilter(pattern_type=PatternType.MATCH)

    assert wanted.matches_pattern(topic("orders"))
    assert wanted.matches_pattern(topic("orders", PatternType.PREFIXED))
