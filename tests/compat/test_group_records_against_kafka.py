"""Records of groups: Kafka's tool prints ours as we mean them, and we read Kafka's as it prints them."""

import base64
import json
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer

from compat.kafka_tools.java import KafkaJava
from compat.kafka_tools.server import KafkaServer, client_settings
from compat.kafka_tools.tools import KafkaTools, complaints
from headrace.coordinators.group.classic import ClassicGroup
from headrace.coordinators.group.consumer import ConsumerGroup
from headrace.coordinators.group.coordinator import GroupCoordinator
from headrace.coordinators.group.limits import GroupLimits
from headrace.coordinators.group.records import GroupRecord, decode_record, encode_record
from headrace.protocol.batch import read_batch
from headrace.protocol.compiled.structs import Struct, default_of
from headrace.protocol.consumer_protocol import decode_assignment, decode_subscription
from headrace.protocol.records import Record, decode_batch, encode_batch
from headrace.storage.config import LogConfig
from support.groups import GroupDesk, beat_request, commit_request, join_request, subscription, sync_request
from support.logs import open_test_log
from support.records import split_batches
from unit.coordinators.group.test_records import RECORDS

PRINTED: Final = re.compile(r"\| offset: .* key: (\{.*\}) payload: (\{.*\}|<DELETE>)")
KEYS_WITH_GROUP: Final = {"1", "2"}  # the others call it groupId
NEWER: Final = {"assignmentTimestamp", "assignmentEpochs"}  # tagged fields that we do not read
READABLE: Final = {"subscription": decode_subscription, "assignment": decode_assignment}  # if they are
TIMEOUT_S: Final = 60
Printed = tuple[dict[str, Any], dict[str, Any] | None]


def printed(tools: KafkaTools, log: Path) -> list[Printed]:
    """What Kafka's tool says of every record of a log of `__consumer_offsets`."""
    options = ["--print-data-log", "--offsets-decoder"]
    output = tools.dump_log_segments([log], extra=options, index_sanity_check=False)
    assert complaints(output) == []
    found = [PRINTED.fullmatch(line) for line in output.splitlines() if line.startswith("| offset: ")]
    assert all(found), output
    return [
        (json.loads(each[1]), None if each[2] == "<DELETE>" else json.loads(each[2]))
        for each in found
        if each
    ]


# -- what Kafka prints, and what we know, side by side ---------------------------------------------


def assert_same(record: GroupRecord, key: Mapping[str, Any], value: Mapping[str, Any] | None) -> None:
    if key["type"] not in KEYS_WITH_GROUP:
        key["data"]["group"] = key["data"].pop("groupId")
    assert_shows(key["data"], record.key)
    assert (value is None) == (record.value is None)
    if value is not None and record.value is not None:
        assert_shows(value["data"], record.value)


def assert_shows(shown: Mapping[str, Any], message: Struct) -> None:
    """Every field that Kafka shows is as ours, and it shows every one of ours that says anything."""
    fields = {camel(field.name): field for field in type(message).__fields__}
    assert shown.keys() - NEWER <= fields.keys()
    for name, field in fields.items():
        value = getattr(message, field.name)
        if name not in shown:
            assert value == default_of(field, type(message)), (name, shown, message)
        else:
            assert_is(shown[name], value, field.name)


def assert_is(shown: Any, value: Any, name: str) -> None:
    if isinstance(shown, dict):
        assert_shows(shown, READABLE[name](value) if name in READABLE else value)
    elif isinstance(value, bytes):
        encode = base64.urlsafe_b64encode if name == "topic_id" else base64.b64encode
        assert shown.rstrip("=") == encode(value).decode().rstrip("="), name
    elif isinstance(value, Sequence) and not isinstance(value, str):
        assert len(shown) == len(value), name
        for one, other in zip(shown, value, strict=True):
            assert_is(one, other, name)
    else:
        assert shown == value, name


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


# -- Kafka reads ours ------------------------------------------------------------------------------


def our_story() -> list[GroupRecord]:
    """What a coordinator of ours writes in the lives of a few groups."""
    at = GroupDesk(initial_rebalance_delay_ms=0).set_topics(orders=4, people=2)
    first = at.join(join_request(instance_id="i1", protocols=(("range", subscription("orders")),))).answer
    at.sync(sync_request(first.member_id, 1, {}, instance_id="i1"))
    at.commit(commit_request([("orders", 0, 5), ("orders", 1, 6)], first.member_id, 1, instance_id="i1"))
    at.beat(beat_request("a", 0, expression="p.*"))  # an upgrade
    at.join(join_request(first.member_id, "i1"))
    at.beat(beat_request("a", 2, owned={}))
    at.beat(beat_request("a", -1))  # a downgrade
    at.leave((first.member_id, "i1"))
    at.beat(beat_request("a", 0, group_id="h", instance_id="i2", rack_id="r", assignor="range"))
    at.beat(beat_request("a", -2, group_id="h", instance_id="i2"))
    at.decide(lambda coordinator, now_ms: coordinator.delete_group("g", now_ms))
    decoded = [decode_record(*entry) for entry in at.log]
    return [record for record in decoded if record is not None]


@pytest.fixture(scope="module")
def ours() -> list[GroupRecord]:
    tombstones = [GroupRecord(record.key, None) for record in RECORDS]
    return [*RECORDS, *tombstones, *our_story()]


def test_kafka_reads_our_records(ours: list[GroupRecord], kafka_tools: KafkaTools, tmp_path: Path) -> None:
    log = open_test_log(tmp_path / "__consumer_offsets-0", LogConfig())
    batch = encode_batch([Record(*encode_record(record), timestamp=1_000) for record in ours])
    log.append_internal(batch, leader_epoch=0)
    log.close()
    (file,) = log.directory.glob("*.log")

    seen = printed(kafka_tools, file)

    assert len(seen) == len(ours)
    assert {key["type"] for key, _ in seen} == {"1", "2", "3", "5", "6", "7", "8", "16"}
    for record, (key, value) in zip(ours, seen, strict=True):
        assert_same(record, key, value)


# -- we read Kafka's -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kafkas_log(kafka_java: KafkaJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The offsets of a Kafka on which groups have read: of Java's console consumer, and of librdkafka's."""
    with KafkaServer(kafka_java, tmp_path_factory.mktemp("kafka-groups")) as kafka:
        kafka.create_topic("orders", partitions=2)
        producer = Producer(client_settings(kafka.bootstrap))
        for number in range(10):
            producer.produce("orders", b"%d" % number, partition=number % 2)
        producer.flush()
        for protocol in ("classic", "consumer"):
            consume(kafka_java, kafka, protocol)
        consume_by_pattern(kafka)
        kafka.stop()
        (file,) = (kafka.log_dir / "__consumer_offsets-0").glob("*.log")
        yield file


def consume(java: KafkaJava, kafka: KafkaServer, protocol: str) -> None:
    properties = [f"group.protocol={protocol}", "auto.offset.reset=earliest"]
    command = java.command(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", kafka.bootstrap, "--topic", "orders", "--group", protocol),
        *("--max-messages", "10", "--timeout-ms", "30000"),
        *(word for each in properties for word in ("--command-property", each)),
    )
    run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert sorted(map(int, run.stdout.split())) == list(range(10)), run.stdout + run.stderr


def consume_by_pattern(kafka: KafkaServer) -> None:
    settings = {"group.id": "pattern", "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    consumer = Consumer(client_settings(kafka.bootstrap) | settings)
    consumer.subscribe(["^ord.*"])
    deadline = time.monotonic() + TIMEOUT_S
    seen = 0
    while seen < 10:
        assert time.monotonic() < deadline, seen
        message = consumer.poll(1)
        seen += message is not None and message.error() is None
    consumer.close()


def records_in(log: Path) -> list[tuple[bytes | None, bytes | None]]:
    return [
        (record.key, record.value)
        for batch in split_batches(log.read_bytes())
        for record in decode_batch(batch, read_batch(batch))
    ]


def test_we_read_kafkas_records(kafkas_log: Path, kafka_tools: KafkaTools) -> None:
    seen = printed(kafka_tools, kafkas_log)
    records = [decode_record(*entry) for entry in records_in(kafkas_log)]

    known = [(record, *each) for record, each in zip(records, seen, strict=True) if record is not None]
    for record, key, value in known:
        assert_same(record, key, value)
    assert {key["type"] for _, key, _ in known} == {"1", "2", "3", "5", "6", "7", "8", "16"}


def test_a_coordinator_of_ours_knows_kafkas_groups(kafkas_log: Path) -> None:
    coordinator = GroupCoordinator(GroupLimits(), lambda: "id")
    for entry in records_in(kafkas_log):
        record = decode_record(*entry)
        if record is not None:
            coordinator.apply(record)

    kinds = {group_id: type(group) for group_id, group in coordinator.groups.items()}
    assert kinds == {"classic": ClassicGroup, "consumer": ConsumerGroup, "pattern": ConsumerGroup}
    for group_id, group in coordinator.groups.items():
        assert group.is_empty
        offsets = {place: each.offset for place, each in coordinator.offsets.of(group_id).items()}
        assert offsets == {("orders", 0): 5, ("orders", 1): 5}
