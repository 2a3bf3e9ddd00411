import pytest

from headrace.security.acl_index import AclIndex, Permissions, canonical_host, subjects_of
from headrace.security.acls import (
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from headrace.security.authorization import Operation, ResourceType

ORDERS = ResourcePattern(ResourceType.TOPIC, "orders")
ALL_ORDERS = ResourcePattern(ResourceType.TOPIC, "orders", PatternType.PREFIXED)
ALICE_READS = AclEntry("User:alice", "*", Operation.READ, PermissionType.ALLOW)
ALICE_WRITES = ALICE_READS._replace(operation=Operation.WRITE)
BOB_READS = ALICE_READS._replace(principal="User:bob")
ALICE = subjects_of("User:alice", "10.0.0.1")
BOB = subjects_of("User:bob", "10.0.0.1")
READ, WRITE = 1 << Operation.READ, 1 << Operation.WRITE


def allowed(index: AclIndex, name: str) -> int | None:
    """The operations that alice is allowed on a topic, or None if no pattern matches it."""
    found = index.permissions(ALICE, ResourceType.TOPIC, name)
    return found.allowed if found else None


def test_the_entries_of_a_pattern_are_replaced_as_a_whole() -> None:
    index = AclIndex({ORDERS: [ALICE_READS, BOB_READS]})

    index.replace(ORDERS, [ALICE_WRITES])

    assert index.entries(ORDERS) == {ALICE_WRITES}
    assert allowed(index, "orders") == WRITE
    assert not index.names_principal("User:bob")
    assert len(index) == 1


def test_a_pattern_without_entries_is_gone() -> None:
    index = AclIndex({ORDERS: [ALICE_READS], ALL_ORDERS: [BOB_READS]})

    index.replace(ORDERS, [])
    assert index.permissions(ALICE, ResourceType.TOPIC, "orders") == Permissions()
    index.replace(ALL_ORDERS, [])

    assert index.permissions(ALICE, ResourceType.TOPIC, "orders") is None
    assert list(index.prefixes(ResourceType.TOPIC, "orders")) == []
    assert not index.names_principal("User:alice")
    assert not index.names_host("*")
    assert len(index) == 0


def test_the_version_changes_with_the_content_and_only_then() -> None:
    index = AclIndex({ORDERS: [ALICE_READS]})
    before = index.version

    index.replace(ORDERS, [ALICE_READS])
    index.replace(ALL_ORDERS, [])
    index.replace_all({ORDERS: [ALICE_READS]})
    assert index.version == before

    index.replace(ORDERS, [ALICE_WRITES])
    assert index.version == before + 1


def test_loading_all_acls_removes_those_that_are_gone() -> None:
    index = AclIndex({ORDERS: [ALICE_READS], ALL_ORDERS: [BOB_READS]})

    index.replace_all({ALL_ORDERS: [ALICE_READS]})

    assert set(index.find(AclFilter())) == {AclBinding(ALL_ORDERS, ALICE_READS)}


def test_a_prefix_length_is_tried_until_the_last_pattern_of_this_length_is_gone() -> None:
    refunds = ALL_ORDERS._replace(name="refund")
    index = AclIndex({ALL_ORDERS: [ALICE_READS], refunds: [ALICE_WRITES]})

    index.replace(ALL_ORDERS, [])

    assert allowed(index, "orders-eu") is None
    assert allowed(index, "refund-eu") == WRITE


def test_patterns_of_other_types_do_not_match() -> None:
    index = AclIndex({ORDERS: [ALICE_READS]})

    assert index.permissions(ALICE, ResourceType.GROUP, "orders") is None


def test_permissions_of_all_matching_patterns_add_up() -> None:
    everything = ORDERS._replace(name="*")
    denied = ALICE_READS._replace(permission_type=PermissionType.DENY, operation=Operation.ALTER)
    index = AclIndex({ORDERS: [ALICE_READS], ALL_ORDERS: [ALICE_WRITES], everything: [denied]})

    assert index.permissions(ALICE, ResourceType.TOPIC, "orders") == (READ | WRITE, 1 << Operation.ALTER)


def test_patterns_are_found_by_who_is_allowed_what() -> None:
    for_all = ALICE_READS._replace(operation=Operation.ALL)
    index = AclIndex({ORDERS: [ALICE_READS], ALL_ORDERS: [for_all]})

    def found(operation: Operation) -> set[ResourcePattern]:
        sets = index.patterns(ALICE, ResourceType.TOPIC, PermissionType.ALLOW, operation)
        return set().union(*sets)

    assert found(Operation.READ) == {ORDERS, ALL_ORDERS}
    assert found(Operation.WRITE) == {ALL_ORDERS}
    assert index.patterns(BOB, ResourceType.TOPIC, PermissionType.ALLOW, Operation.READ) == []
    assert index.patterns(ALICE, ResourceType.TOPIC, PermissionType.DENY, Operation.READ) == []
    assert index.patterns(ALICE, ResourceType.GROUP, PermissionType.ALLOW, Operation.READ) == []


@pytest.mark.parametrize(
    "wanted",
    [
        AclFilter(),
        AclFilter(principal="User:bob"),
        AclFilter(ResourceType.TOPIC, "orders"),
        AclFilter(ResourceType.TOPIC, "orders-eu", PatternType.MATCH),
        AclFilter(None, "orders", PatternType.PREFIXED),
        AclFilter(None, "orders", PatternType.LITERAL),
        AclFilter(None, "*", PatternType.MATCH),
        AclFilter(ResourceType.USER, None, PatternType.MATCH),
    ],
)
def test_a_search_finds_what_its_filter_matches(wanted: AclFilter) -> None:
    acls = {
        pattern._replace(resource_type=type_): [ALICE_READS, BOB_READS]
        for pattern in (ORDERS, ALL_ORDERS, ORDERS._replace(name="*"), ORDERS._replace(name="orders-eu"))
        for type_ in (ResourceType.TOPIC, ResourceType.GROUP)
    }
    expected = [AclBinding(pattern, entry) for pattern, entries in acls.items() for entry in entries]

    found = list(AclIndex(acls).find(wanted))

    assert sorted(found) == sorted(filter(wanted.matches, expected))


def test_a_change_does_not_disturb_a_search() -> None:
    index = AclIndex({ORDERS: [ALICE_READS], ALL_ORDERS: [BOB_READS]})

    search = index.find(AclFilter())
    first = next(search)
    index.replace_all({})

    assert {first, *search} == {AclBinding(ORDERS, ALICE_READS), AclBinding(ALL_ORDERS, BOB_READS)}


@pytest.mark.parametrize(
    ("host", "canonical"),
    [
        ("*", "*"),
        ("10.0.0.1", "10.0.0.1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80:0:0:0:0:0:0:1%eth0", "fe80::1%eth0"),
        ("no:address", "no:address"),
        ("local", "local"),
    ],
)
def test_an_address_has_one_text(host: str, canonical: str) -> None:
    assert canonical_host(host) == canonical
