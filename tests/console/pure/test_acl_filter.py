"""The filters of the list of ACLs, and what ACLs come to for a principal and a resource."""

from headrace.gateway.console.views.acls import (
    ALLOWED,
    DENIED,
    NO_ACL,
    AclForm,
    effective_operations,
    read_form,
)
from headrace.security.acls import (
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from headrace.security.authorization import Operation, ResourceType


def acl(
    operation: Operation,
    permission: PermissionType = PermissionType.ALLOW,
    *,
    who: str = "User:alice",
    host: str = "*",
    name: str = "orders",
    pattern_type: PatternType = PatternType.LITERAL,
) -> AclBinding:
    pattern = ResourcePattern(ResourceType.TOPIC, name, pattern_type)
    return AclBinding(pattern, AclEntry(who, host, operation, permission))


def test_without_filters_every_acl_is_listed() -> None:
    assert read_form({}).filter == AclFilter()
    assert read_form({"type": "", "name": " ", "principal": "", "q": "x"}).is_default


def test_a_name_selects_all_that_apply_to_it() -> None:
    form = read_form({"type": "TOPIC", "name": "orders", "principal": "alice", "permission": "DENY"})
    assert form.filter == AclFilter(
        ResourceType.TOPIC, "orders", PatternType.MATCH, "User:alice", permission_type=PermissionType.DENY
    )


def test_what_does_not_exist_is_ignored_and_texts_are_bounded() -> None:
    form = read_form({"type": "ANY", "permission": "allow", "name": "n" * 2000, "principal": "p:" * 2000})
    assert (form.resource_type, form.permission) == ("", "")
    assert (len(form.name), len(form.principal)) == (1000, 1000)


def test_a_deny_wins_and_an_allow_implies_describe() -> None:
    form = AclForm(principal="User:alice", resource_type="TOPIC", name="orders")
    found = effective_operations(
        form,
        [
            acl(Operation.READ),
            acl(Operation.WRITE, name="ord", pattern_type=PatternType.PREFIXED),
            acl(Operation.WRITE, PermissionType.DENY, who="User:*", name="*"),
            acl(Operation.DELETE, host="10.0.0.7"),
        ],
    )
    assert found["READ"] == found["DESCRIBE"] == ALLOWED
    assert found["WRITE"] == DENIED
    assert found["DELETE"] == found["ALTER"] == NO_ACL
    assert "CLUSTER_ACTION" not in found


def test_the_cluster_has_one_name() -> None:
    form = AclForm(principal="User:alice", resource_type="CLUSTER")
    pattern = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")
    entry = AclEntry("User:alice", "*", Operation.ALL, PermissionType.ALLOW)
    assert set(effective_operations(form, [AclBinding(pattern, entry)]).values()) == {ALLOWED}


def test_nothing_is_said_about_several_principals_or_resources() -> None:
    for form in (
        AclForm(principal="User:alice", name="orders"),
        AclForm(principal="User:alice", resource_type="TOPIC"),
        AclForm(resource_type="TOPIC", name="orders"),
        AclForm(principal="User:alice", resource_type="TOPIC", name="orders", permission="ALLOW"),
    ):
        assert effective_operations(form, [acl(Operation.READ)]) == {}
