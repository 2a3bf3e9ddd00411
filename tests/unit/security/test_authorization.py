from headrace.security.authorization import ALLOW_ALL, OPERATIONS, Operation, ResourceType
from headrace.security.principals import ANONYMOUS

HOST = "10.0.0.1"


def test_clients_of_a_cluster_without_acls_see_the_operations_that_kafka_reports() -> None:
    """Bit 8 is DESCRIBE, for example: a topic has 3 to 8, 10 and 11."""
    seen = {each: ALLOW_ALL.authorized_operations(ANONYMOUS, HOST, each, "x") for each in ResourceType}

    assert seen[ResourceType.TOPIC] == 0b1101_1111_1000
    assert seen[ResourceType.GROUP] == 0b1101_0100_1000
    assert seen[ResourceType.CLUSTER] == 0b1_1111_1010_0000


def test_without_acls_everybody_may_do_everything() -> None:
    for resource, operations in OPERATIONS.items():
        for operation in operations:
            assert ALLOW_ALL.may_on_any_resource(ANONYMOUS, HOST, operation, resource)


def test_every_operation_but_all_exists_for_some_resource_type() -> None:
    existing = {operation for operations in OPERATIONS.values() for operation in operations}

    assert existing == set(Operation) - {Operation.ALL}
    assert OPERATIONS.keys() == set(ResourceType)
