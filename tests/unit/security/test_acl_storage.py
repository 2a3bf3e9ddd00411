import pytest

from headrace.security.acl_storage import (
    ACL_CHANGES,
    PERSISTENT_PATHS,
    decode,
    decode_change,
    directory,
    encode,
    encode_change,
    path,
)
from headrace.security.acls import AclEntry, InvalidAcl, PatternType, PermissionType, ResourcePattern
from headrace.security.authorization import Operation, ResourceType

ALICE_READS = AclEntry("User:alice", "*", Operation.READ, PermissionType.ALLOW)
STORED = (
    b'{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow",'
    b'"operation":"Read","host":"*"}]}'
)


def test_every_type_of_resource_has_a_directory_of_kafkas_name() -> None:
    names = [directory(each, PatternType.LITERAL) for each in ResourceType]

    assert names == [
        "/kafka-acl/Topic",
        "/kafka-acl/Group",
        "/kafka-acl/Cluster",
        "/kafka-acl/TransactionalId",
        "/kafka-acl/DelegationToken",
        "/kafka-acl/User",
    ]


def test_paths_are_kafkas() -> None:
    orders = ResourcePattern(ResourceType.TOPIC, "orders")

    assert path(orders) == "/kafka-acl/Topic/orders"
    assert path(orders._replace(name="*")) == "/kafka-acl/Topic/*"
    assert path(orders._replace(pattern_type=PatternType.PREFIXED)) == (
        "/kafka-acl-extended/prefixed/Topic/orders"
    )
    assert ACL_CHANGES[PatternType.LITERAL] == "/kafka-acl-changes"
    assert ACL_CHANGES[PatternType.PREFIXED] == "/kafka-acl-extended-changes"
    assert "/kafka-acl-extended/prefixed/TransactionalId" in PERSISTENT_PATHS
    assert "/kafka-acl-extended-changes" in PERSISTENT_PATHS


@pytest.mark.parametrize("name", ["a/b", ".", "..", "a\x00", "a\x7f", "\ue000", "\uffff", "\U0001f600"])
def test_a_name_that_zookeeper_refuses_is_refused_before(name: str) -> None:
    with pytest.raises(InvalidAcl, match="cannot be stored in ZooKeeper"):
        path(ResourcePattern(ResourceType.GROUP, name))


@pytest.mark.parametrize("name", ["a.b", "...", "grüße", "a b", "%2F", "消费者"])
def test_other_names_are_children_of_the_same_name(name: str) -> None:
    assert path(ResourcePattern(ResourceType.GROUP, name)) == f"/kafka-acl/Group/{name}"


def test_entries_are_stored_as_kafka_stores_them() -> None:
    assert encode([ALICE_READS]) == STORED
    assert decode(STORED) == {ALICE_READS}


def test_every_entry_survives_storage() -> None:
    entries = {
        AclEntry(f"{type_}:grüße:{operation.name}", host, operation, permission)
        for type_ in ("User", "Group")
        for host in ("*", "10.0.0.1", "0:0:0:0:0:0:0:1")
        for operation in Operation
        for permission in PermissionType
    }

    assert decode(encode(entries)) == entries


def test_the_same_entries_are_stored_as_the_same_bytes() -> None:
    bob = ALICE_READS._replace(principal="User:bob")

    assert encode([ALICE_READS, bob]) == encode([bob, ALICE_READS])


@pytest.mark.parametrize("data", [None, b"", encode([])])
def test_a_znode_may_have_no_entries(data: bytes | None) -> None:
    assert decode(data) == frozenset()


def test_spaces_fields_that_we_do_not_know_and_upper_case_are_accepted() -> None:
    stored = (
        b'{"acls": [{"host": "h", "operation": "DESCRIBECONFIGS", "permissionType": "DENY", '
        b'"principal": "User:bob", "note": 1}], "version": 1}'
    )

    assert decode(stored) == {AclEntry("User:bob", "h", Operation.DESCRIBE_CONFIGS, PermissionType.DENY)}


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense",
        b"\xff",
        b"[]",
        b"{}",
        STORED.replace(b'"version":1', b'"version":2'),
        b'{"version":1}',
        b'{"version":1,"acls":{}}',
        b'{"version":1,"acls":[1]}',
        STORED.replace(b"User:alice", b"alice"),
        STORED.replace(b'"User:alice"', b"null"),
        STORED.replace(b"Allow", b"Perhaps"),
        STORED.replace(b"Read", b"Unknown"),
        STORED.replace(b'"host"', b'"hosts"'),
    ],
)
def test_what_cannot_be_read_is_an_error_and_never_ignored(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decode(data)


def test_a_change_of_a_literal_pattern_is_announced_as_text() -> None:
    pattern = ResourcePattern(ResourceType.TRANSACTIONAL_ID, "pay:1")

    assert encode_change(pattern) == b"TRANSACTIONAL_ID:pay:1"


def test_a_change_of_a_prefixed_pattern_is_announced_as_json() -> None:
    pattern = ResourcePattern(ResourceType.TOPIC, "ord", PatternType.PREFIXED)

    assert encode_change(pattern) == (
        b'{"version":1,"resourceType":"TOPIC","name":"ord","patternType":"PREFIXED"}'
    )


@pytest.mark.parametrize("pattern_type", [PatternType.LITERAL, PatternType.PREFIXED])
@pytest.mark.parametrize("resource_type", ResourceType)
def test_every_announcement_is_understood(resource_type: ResourceType, pattern_type: PatternType) -> None:
    pattern = ResourcePattern(resource_type, "grüße:1", pattern_type)

    assert decode_change(encode_change(pattern), pattern_type) == pattern


def test_announcements_of_old_brokers_are_understood() -> None:
    assert decode_change(b"TransactionalId:pay", PatternType.LITERAL) == ResourcePattern(
        ResourceType.TRANSACTIONAL_ID, "pay"
    )


@pytest.mark.parametrize(
    ("data", "pattern_type"),
    [
        (b"orders", PatternType.LITERAL),
        (b"Planet:orders", PatternType.LITERAL),
        (b"\xff:orders", PatternType.LITERAL),
        (b"TOPIC:orders", PatternType.PREFIXED),
        (b'{"version":2,"resourceType":"TOPIC","name":"a","patternType":"PREFIXED"}', PatternType.PREFIXED),
        (b'{"version":1,"resourceType":"TOPIC","name":1,"patternType":"PREFIXED"}', PatternType.PREFIXED),
    ],
)
def test_an_announcement_that_names_no_pattern_is_an_error(data: bytes, pattern_type: PatternType) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decode_change(data, pattern_type)
