"""UpdateMetadata as earlier versions have written it."""

from headrace.protocol.between_brokers.update_metadata import (
    FULL,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicConfig,
    UpdateMetadataTopicState,
)

FIRST = bytes.fromhex(
    "00000001000200000006000000000000004d020274000102030405060708090a0b0c0d0e0f020000000300000006000000020000"
    "0004030000000200000001000000090400000001000000020000000302000000030200050200000003030400000003010011020d"
    "726574656e74696f6e2e6d7302350002000000020200002384043a3a310a504c41494e544558540000000261010008000000000000"
    "004d00"
)
"""As the version before the field `node` has encoded it. Never change these bytes."""


def test_an_update_of_an_earlier_version_is_understood() -> None:
    state = UpdateMetadataPartitionState(
        partition_index=3,
        controller_epoch=6,
        leader=2,
        leader_epoch=4,
        isr=[2, 1],
        zk_version=9,
        replicas=[1, 2, 3],
        offline_replicas=[3],
        eligible_leader_replicas=[3],
        last_known_leader=3,
    )
    topic = UpdateMetadataTopicState(
        topic_name="t",
        topic_id=bytes(range(16)),
        partition_states=[state],
        configs=[UpdateMetadataTopicConfig(name="retention.ms", value="5")],
    )
    endpoint = UpdateMetadataEndpoint(port=9092, host="::1", listener="PLAINTEXT", security_protocol=0)
    expected = UpdateMetadataRequest(
        controller_id=1,
        type=FULL,
        controller_epoch=6,
        broker_epoch=77,
        topic_states=[topic],
        live_brokers=[UpdateMetadataBroker(id=2, endpoints=[endpoint], rack="a", broker_epoch=77, node=None)],
    )
    assert UpdateMetadataRequest.decode(memoryview(FIRST), 8) == expected
    assert b"".join(expected.encode(8)) == FIRST
