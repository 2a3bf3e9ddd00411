"""Topics that refuse records without a schema of theirs, and schemas that ZooKeeper knows of."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from kazoo.client import KazooClient

from headrace.client.admin.admin import Admin
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Address, Connection
from headrace.coordination.credentials import Credential
from headrace.protocol.errors import ErrorCode
from headrace.protocol.records import Record, encode_batch
from headrace.protocol.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.process import ClusterProcess

ORDER = Schema('{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}', "AVRO")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("validation")) as process:
        yield process


@pytest.fixture(scope="module")
def registry(up: ClusterProcess) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": up.http}) as client:
        yield client


@pytest.fixture
def topic(up: ClusterProcess, request: pytest.FixtureRequest) -> str:
    """A topic of three partitions on three brokers whose values must have a schema."""
    name = f"t{abs(hash(request.node.name)) % 10**8}"
    Admin(up.bootstrap).create_topic(
        name, partitions=3, replicas=3, configs={"confluent.value.schema.validation": "true"}
    )
    return name


def framed(schema_id: int, data: bytes = b"\x02") -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + data


Send = Callable[..., dict[int, KafkaError | None]]


@pytest.fixture
def send(up: ClusterProcess) -> Send:
    """Writes values, each to a partition in turn; what became of each."""

    def sending(
        topic: str, *values: bytes | None, partitions: int = 3, **settings: object
    ) -> dict[int, KafkaError | None]:
        producer = Producer({"bootstrap.servers": up.bootstrap, "linger.ms": 20, **settings})
        outcomes: dict[int, KafkaError | None] = {}
        for number, value in enumerate(values):
            producer.produce(
                topic,
                value,
                partition=number % partitions,
                on_delivery=lambda error, _message, number=number: outcomes.update({number: error}),
            )
        producer.flush(30)
        return outcomes

    return sending


def test_a_schema_may_be_used_on_any_broker_as_soon_as_it_is_registered(
    registry: SchemaRegistryClient, topic: str, send: Send
) -> None:
    """No broker has heard of it before it is used: each finds out when a record names it."""
    schema_id = registry.register_schema(f"{topic}-value", ORDER)

    assert send(topic, *[framed(schema_id)] * 9) == dict.fromkeys(range(9))


def test_records_with_unknown_schemas_or_none_are_refused_and_nulls_are_not(
    registry: SchemaRegistryClient, topic: str, send: Send
) -> None:
    registry.register_schema(f"{topic}-value", ORDER)
    outcomes = send(topic, b"plain text", framed(999_999), None)

    assert [error and error.code() for _, error in sorted(outcomes.items())] == [
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_RECORD,
        None,
    ]


def test_a_schema_of_another_subject_is_refused(
    registry: SchemaRegistryClient, topic: str, send: Send
) -> None:
    other = Schema('{"type":"record","name":"Other","fields":[]}', "AVRO")
    schema_id = registry.register_schema("somebody-elses-value", other)
    (error,) = send(topic, framed(schema_id)).values()

    assert error is not None
    assert error.code() == KafkaError.INVALID_RECORD


def test_the_answer_says_which_records_are_bad(
    up: ClusterProcess, registry: SchemaRegistryClient, topic: str
) -> None:
    good = framed(registry.register_schema(f"{topic}-value", ORDER))
    batch = encode_batch([Record(None, value, timestamp=1) for value in (good, b"rubbish", good, framed(0))])
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
        ],
    )
    connection = Connection(leader_of(up, topic))
    answer = connection.receive(connection.send(request, 9))
    connection.close()
    (partition,) = answer.responses[0].partition_responses

    assert partition.error_code == ErrorCode.INVALID_RECORD
    assert [each.batch_index for each in partition.record_errors] == [1, 3]
    assert "has no schema id" in (partition.record_errors[0].batch_index_error_message or "")


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_looked_at_however_they_are_packed(
    registry: SchemaRegistryClient, topic: str, send: Send, compression: str
) -> None:
    good = framed(registry.register_schema(f"{topic}-value", ORDER))
    packed = {"compression.type": compression, "partitions": 1}

    assert send(topic, *[good + b"x" * 100] * 50, **packed) == dict.fromkeys(range(50))
    outcomes = send(topic, *[good, b"rubbish " * 20] * 25, **packed)
    assert all(outcomes[number] is not None for number in range(1, 50, 2))


@pytest.mark.parametrize("batch", [b"", b"short", bytes(61), bytes(100), b"\xff" * 100])
def test_what_is_no_batch_is_refused_and_the_connection_goes_on(
    up: ClusterProcess, topic: str, batch: bytes
) -> None:
    data = [PartitionProduceData(index=0, records=batch)]
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )
    connection = Connection(leader_of(up, topic))
    for _ in range(2):
        answer = connection.receive(connection.send(request, 9))
        assert answer.responses[0].partition_responses[0].error_code != ErrorCode.NONE
    connection.close()


def leader_of(up: ClusterProcess, topic: str) -> Address:
    with Brokers(up.bootstrap) as brokers:
        found = brokers.metadata()
    (partitions,) = (each.partitions for each in found.topics if each.name == topic)
    leader = next(each.leader_id for each in partitions if each.partition_index == 0)
    return next(Address(each.host, each.port) for each in found.brokers if each.node_id == leader)


def test_a_deleted_schema_is_not_taken_any_more(
    registry: SchemaRegistryClient, topic: str, send: Send
) -> None:
    schema_id = registry.register_schema(f"{topic}-value", ORDER)
    assert send(topic, framed(schema_id)) == {0: None}
    registry.delete_subject(f"{topic}-value")

    # Whoever has read the deletion refuses it; one that has not yet is told by the next record it doubts.
    outcomes = send(topic, b"doubtful", framed(schema_id), partitions=1, **{"linger.ms": 0, "batch.size": 1})
    assert outcomes[1] is not None


def test_the_rule_can_be_switched_off_while_the_cluster_runs(
    up: ClusterProcess, topic: str, send: Send
) -> None:
    Admin(up.bootstrap).alter_topic_configs(topic, sets={"confluent.value.schema.validation": "false"})
    deadline = time.monotonic() + 20
    while any(send(topic, *[b"plain"] * 3).values()):
        assert time.monotonic() < deadline, "it is refused still"


def test_zookeeper_knows_every_schema(up: ClusterProcess, registry: SchemaRegistryClient, topic: str) -> None:
    schema_id = registry.register_schema(f"{topic}-value", ORDER)
    with zookeeper(up) as client:
        subject = waited_for(client, f"/schemas/subjects/{topic}-value")
        assert subject["versions"] == {"1": schema_id}
        text = waited_for(client, f"/schemas/ids/{schema_id}")
        assert (text["schemaType"], json.loads(text["schema"])["name"]) == ("AVRO", "Order")


class zookeeper:  # noqa: N801  a context manager
    """A client of the cluster's coordinator, whose port is in its log."""

    def __init__(self, up: ClusterProcess) -> None:
        log = (up.data / "logs" / "coordinator.log").read_text()
        port = log.rpartition("coordinator on 127.0.0.1:")[2].partition(",")[0]
        user = Credential.of_file(up.data / "jaas.conf")
        self._client = KazooClient(
            f"127.0.0.1:{port}", auth_data=[("digest", f"{user.name}:{user.password}")]
        )

    def __enter__(self) -> KazooClient:
        self._client.start()
        return self._client

    def __exit__(self, *_error: object) -> None:
        self._client.stop()
        self._client.close()


def waited_for(client: KazooClient, path: str) -> dict[str, Any]:
    deadline = time.monotonic() + 20
    while not client.exists(path):
        assert time.monotonic() < deadline, f"{path} is not there"
        time.sleep(0.02)
    found: dict[str, Any] = json.loads(client.get(path)[0])
    return found
