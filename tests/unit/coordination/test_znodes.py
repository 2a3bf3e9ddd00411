"""The JSON in these tests is what Kafka 3.9 wrote: the layout is not ours to change."""

import json
from functools import partial

import pytest

from headrace.coordination.znodes import (
    BrokerRegistration,
    ClusterId,
    ClusterSecret,
    Config,
    ConfigChange,
    Controller,
    ControllerEpoch,
    CorruptZnode,
    PartitionState,
    ProducerIdBlock,
    TopicAssignment,
    decode_id,
    encode_id,
)
from headrace.security.listeners import Endpoint

TOPIC_ID = bytes(range(16))


def test_a_broker_registers_as_kafkas_brokers_did() -> None:
    registration = BrokerRegistration(
        broker_id=1,
        endpoints=(Endpoint("PLAINTEXT", "host", 9092),),
        timestamp_ms=1_700_000_000_000,
        rack="r1",
        node="n1",
    )

    assert registration.path == "/brokers/ids/1"
    assert json.loads(registration.encode()) == {
        "version": 5,
        "host": "host",
        "port": 9092,
        "jmx_port": -1,
        "timestamp": "1700000000000",
        "endpoints": ["PLAINTEXT://host:9092"],
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "features": {},
        "rack": "r1",
        "node": "n1",
    }
    decoded = BrokerRegistration.decode(1, registration.encode())
    assert (decoded.endpoints, decoded.rack) == (registration.endpoints, "r1")


def test_a_topic_is_its_id_and_its_replicas() -> None:
    topic = TopicAssignment(topic="t", topic_id=TOPIC_ID, replicas={0: (1, 2), 1: (2, 1)})

    assert topic.path == "/brokers/topics/t"
    assert json.loads(topic.encode()) == {
        "version": 3,
        "topic_id": "AAECAwQFBgcICQoLDA0ODw",
        "partitions": {"0": [1, 2], "1": [2, 1]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    assert TopicAssignment.decode("t", topic.encode()) == topic


def test_a_partitions_state_says_who_leads() -> None:
    state = PartitionState(topic="t", partition=3, leader=1, leader_epoch=4, isr=(1, 2), controller_epoch=7)

    assert state.path == "/brokers/topics/t/partitions/3/state"
    assert PartitionState.decode("t", 3, state.encode()) == state
    kafkas = (
        b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1],"leader_recovery_state":0}'
    )
    assert PartitionState.decode("t", 0, kafkas).leader == 1


@pytest.mark.parametrize(
    "znode",
    [
        ClusterId(id="abc"),
        Controller(broker_id=2, timestamp_ms=5),
        ControllerEpoch(epoch=9),
        ProducerIdBlock(broker_id=1, first=1000, last=1999),
    ],
)
def test_what_is_written_is_read(znode: ClusterId | Controller | ControllerEpoch | ProducerIdBlock) -> None:
    assert type(znode).decode(znode.encode()) == znode


def test_settings_and_their_changes_are_read_as_written() -> None:
    config = Config(kind="topics", name="t", values={"retention.ms": "5"})
    change = ConfigChange(entity="topics/t")

    assert config.path == "/config/topics/t"
    assert Config.decode("topics", "t", config.encode()) == config
    assert ConfigChange.decode("/config/changes/config_change_1", change.encode()) == change


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"{}", b"null", b"\xff", b'{"topic_id": "short", "partitions": {}}']
)
def test_garbage_in_zookeeper_is_named_with_its_path(data: bytes) -> None:
    with pytest.raises(CorruptZnode, match="/brokers/topics/t"):
        TopicAssignment.decode("t", data)
    with pytest.raises(CorruptZnode, match="/cluster/id"):
        ClusterId.decode(data)
    with pytest.raises(CorruptZnode, match="/controller_epoch"):
        ControllerEpoch.decode(data)


def test_the_content_of_a_secret_znode_is_not_in_the_error() -> None:
    for decode in (ClusterSecret.decode, partial(Config.decode, "users", "alice")):
        with pytest.raises(CorruptZnode, match="is invalid: its content is secret") as error:
            decode(b'{"half a secret')
        assert "half" not in str(error.value)
    assert ClusterSecret.decode(ClusterSecret(secret=b"abc").encode()) == ClusterSecret(secret=b"abc")
    assert "abc" not in repr(ClusterSecret(secret=b"abc"))


def test_ids_are_printed_as_kafka_prints_them() -> None:
    assert decode_id(encode_id(TOPIC_ID)) == TOPIC_ID
    assert encode_id(bytes(16)) == "AAAAAAAAAAAAAAAAAAAAAA"
