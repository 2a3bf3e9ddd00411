"""Messages, records and znodes go from this version to the previous one and back.

The previous version decodes what this one has encoded, and encodes what it has understood. What comes back is
what was sent, without the fields that the previous version does not know.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from headrace.coordination.processes import ProcessIdentity
from headrace.coordination.znodes import BrokerRegistration, PartitionState, TopicAssignment
from headrace.coordinators.group.records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
    OffsetCommitValue,
)
from headrace.coordinators.group.records import encode_record as encode_group_record
from headrace.coordinators.transaction.records import TransactionRecord
from headrace.coordinators.transaction.records import encode_record as encode_transaction_record
from headrace.coordinators.transaction.state import Transaction, TransactionState
from headrace.protocol.between_brokers.broker_metrics import (
    BrokerMetricsRequest,
    BrokerMetricsResponse,
    Family,
    Sample,
)
from headrace.protocol.between_brokers.step_down import (
    AgreedPartition,
    StepDownPartition,
    StepDownRequest,
    StepDownResponse,
)
from headrace.protocol.between_brokers.update_metadata import (
    INCREMENTAL,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicConfig,
    UpdateMetadataTopicState,
)
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.schema.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from headrace.protocol.schema.envelope import EnvelopeRequest, EnvelopeResponse
from headrace.replication.controller.updates import VERSIONS as UPDATE_VERSIONS
from headrace.security.listeners import Endpoint
from upgrade.previous import run

UNKNOWN_TAG: Final = b"\x01\x63\x02ab"  # one tagged field, number 99, of two bytes
TOPIC_ID: Final = bytes(range(16))

BROKER_EPOCH: Final = 77
STATES: Final = [
    UpdateMetadataTopicState(
        topic_name="orders",
        topic_id=TOPIC_ID,
        partition_states=[
            UpdateMetadataPartitionState(
                partition_index=3,
                controller_epoch=6,
                leader=2,
                leader_epoch=4,
                isr=[2, 1],
                zk_version=9,
                replicas=[1, 2, 3],
                offline_replicas=[3],
                eligible_leader_replicas=[3],
                adding_replicas=[4],
                removing_replicas=[1],
                last_known_leader=3,
            )
        ],
        configs=[UpdateMetadataTopicConfig(name="retention.ms", value="5")],
    )
]


def update_of(node: str | None = None) -> UpdateMetadataRequest:
    """Return an UpdateMetadata with one broker, which is on `node`."""
    endpoint = UpdateMetadataEndpoint(port=9092, host="::1", listener="PLAINTEXT", security_protocol=0)
    broker = UpdateMetadataBroker(id=2, endpoints=[endpoint], rack="a", broker_epoch=BROKER_EPOCH, node=node)
    return UpdateMetadataRequest(
        controller_id=1,
        type=INCREMENTAL,
        controller_epoch=6,
        broker_epoch=BROKER_EPOCH,
        topic_states=STATES,
        live_brokers=[broker],
    )


MESSAGES: Final[Sequence[tuple[Message, int]]] = [
    (update_of(), UPDATE_VERSIONS.start),
    (UpdateMetadataResponse(error_code=11), UPDATE_VERSIONS.start),
    (
        StepDownRequest(
            controller_epoch=6,
            broker_epoch=BROKER_EPOCH,
            timeout_ms=1000,
            partitions=[
                StepDownPartition(topic_name="t", partition_index=1, partition_epoch=9, next_leader=3)
            ],
        ),
        0,
    ),
    (StepDownResponse(agreed=[AgreedPartition(topic_name="t", partition_index=1)]), 0),
    (BrokerMetricsRequest(prefixes=["kafka_server"]), 0),
    (
        BrokerMetricsResponse(
            broker_id=2,
            at_ms=5,
            families=[
                Family(
                    name="n",
                    kind="gauge",
                    help="h",
                    labels=["topic"],
                    samples=[Sample(labels=["t"], value=0.5)],
                )
            ],
        ),
        0,
    ),
    (EnvelopeRequest(request_data=b"data", request_principal=b"principal", client_host_address=b"\0" * 4), 0),
    (EnvelopeResponse(response_data=b"data", error_code=41), 0),
    (
        AlterPartitionRequest(
            broker_id=2,
            broker_epoch=BROKER_EPOCH,
            topics=[
                AlterPartitionRequestTopicData(
                    topic_id=TOPIC_ID,
                    partitions=[
                        AlterPartitionRequestPartitionData(
                            partition_index=3,
                            leader_epoch=4,
                            new_isr_with_epochs=[BrokerState(broker_id=2, broker_epoch=77)],
                            partition_epoch=9,
                        )
                    ],
                )
            ],
        ),
        3,
    ),
]
THROUGH: Final = """
import sys
from importlib import import_module

for line in sys.stdin:
    module, name, version, body = line.split()
    message = getattr(import_module(module), name).decode(memoryview(bytes.fromhex(body)), int(version))
    print(b"".join(message.encode(int(version))).hex())
"""
RECORDS: Final = """
import json, sys
from importlib import import_module

for module, key, value in json.load(sys.stdin):
    records = import_module(module)
    back = records.encode_record(records.decode_record(bytes.fromhex(key), bytes.fromhex(value)))
    print(json.dumps([module, *(each.hex() for each in back)]))
"""
ZNODES: Final = """
import json, sys
from headrace.coordination import znodes

for name, arguments, content in json.load(sys.stdin):
    print(getattr(znodes, name).decode(*arguments, content.encode()).encode().decode())
"""


def encoded(message: Message, version: int) -> bytes:
    return b"".join(message.encode(version))


MOVED: Final = (("protocol.between_brokers.", "protocol."), ("headrace.coordinators.", "headrace."))


def module_in(previous: Path, module: str) -> str:
    """Return the name of a module in the previous version, which may have another layout of packages."""
    if not (previous / module.replace(".", "/")).with_suffix(".py").exists():
        for here, there in MOVED:
            module = module.replace(here, there)
    return module


def through(previous: Path, messages: Sequence[tuple[type[Message], int, bytes]]) -> list[bytes]:
    """Return the bodies as the previous version encodes them after it has decoded them."""
    lines = [
        f"{module_in(previous, cls.__module__)} {cls.__name__} {version} {body.hex()}"
        for cls, version, body in messages
    ]
    return [bytes.fromhex(line) for line in run(previous, THROUGH, "\n".join(lines)).split()]


def test_the_previous_version_understands_messages_between_brokers(previous: Path) -> None:
    sent = [(type(message), version, encoded(message, version)) for message, version in MESSAGES]
    back = through(previous, sent)
    assert [
        cls.decode(memoryview(body), version) for (cls, version, _), body in zip(sent, back, strict=True)
    ] == [message for message, _ in MESSAGES]


def test_the_previous_version_ignores_tagged_fields_that_it_does_not_know(previous: Path) -> None:
    plain = encoded(update_of(), 8)
    assert plain.endswith(b"\0")
    later = plain[:-1] + UNKNOWN_TAG  # a field of a version that does not exist yet
    sent = [(UpdateMetadataRequest, 8, encoded(update_of(node="n1"), 8)), (UpdateMetadataRequest, 8, later)]
    for body in through(previous, sent):
        found = UpdateMetadataRequest.decode(memoryview(body), 8)
        assert found.topic_states == STATES
        assert [each.broker_epoch for each in found.live_brokers] == [BROKER_EPOCH]
    assert UpdateMetadataRequest.decode(memoryview(later), 8) == update_of()


def test_the_previous_version_reads_the_records_of_coordinators(previous: Path) -> None:
    group = module_in(previous, "headrace.coordinators.group.records")
    transaction = module_in(previous, "headrace.coordinators.transaction.records")
    commit = GroupRecord(
        OffsetCommitKey(group="g", topic="t", partition=1),
        OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=7),
    )
    consumer = GroupRecord(ConsumerGroupMetadataKey(group="g"), ConsumerGroupMetadataValue(epoch=3))
    ended = Transaction(
        transactional_id="id",
        producer_id=5,
        producer_epoch=1,
        timeout_ms=60_000,
        state=TransactionState.PREPARE_COMMIT,
        partitions=frozenset({TopicPartition("t", 1)}),
        start_ms=1,
        last_update_ms=2,
        previous_producer_id=4,
        next_producer_id=6,
        client_version=2,
    )
    pairs = [
        (group, *encode_group_record(commit)),
        (group, *encode_group_record(consumer)),
        (transaction, *encode_transaction_record(TransactionRecord("id", ended))),
    ]
    sent = [[module, key.hex(), (value or b"").hex()] for module, key, value in pairs]
    assert [json.loads(line) for line in run(previous, RECORDS, json.dumps(sent)).splitlines()] == sent


def test_the_previous_version_reads_znodes_with_fields_that_it_does_not_know(previous: Path) -> None:
    registration = BrokerRegistration(
        broker_id=2,
        endpoints=(Endpoint("PLAINTEXT", "localhost", 9092),),
        timestamp_ms=5,
        rack="a",
        process=ProcessIdentity(boot_id="b", pid_namespace="n", pid=7, start_time=9),
    )
    assignment = TopicAssignment(topic="t", topic_id=TOPIC_ID, replicas={0: (1, 2)}, adding={}, removing={})
    state = PartitionState(topic="t", partition=0, leader=1, leader_epoch=3, isr=(1, 2), controller_epoch=4)
    known = [
        ("BrokerRegistration", [2], registration.encode()),
        ("TopicAssignment", ["t"], assignment.encode()),
        ("PartitionState", ["t", 0], state.encode()),
    ]
    later = [
        (name, arguments, json.dumps({**json.loads(content), "node": "n1", "later": {"a": 1}}))
        for name, arguments, content in known
    ]
    back = run(previous, ZNODES, json.dumps(later)).splitlines()
    for line, (*_, content) in zip(back, known, strict=True):
        understood, written = json.loads(line), json.loads(content)
        assert {name: understood[name] for name in written} == written
