"""docs/moving.md: the files of a topic, taken from Apache Kafka, are served with their offsets."""

import re
import shutil
import time
from pathlib import Path

from compat.kafka_tools.server import KafkaServer
from headrace import Admin, Consumer, Producer
from headrace.client.wire.brokers import Brokers
from headrace.protocol.schema.describe_producers import DescribeProducersRequest, TopicRequest
from support.process import UpProcess

PAGE = (Path(__file__).parents[2] / "docs" / "moving.md").read_text("utf-8")
TOPIC = "orders"
PARTITIONS = 2
TIMEOUT_S = 30


def test_a_topic_moves_with_its_files(kafka_server: KafkaServer, tmp_path: Path) -> None:
    kafka_server.create_topic(TOPIC, partitions=PARTITIONS)
    with Producer(kafka_server.bootstrap, compression="zstd") as producer:
        for number in range(500):
            producer.send(TOPIC, b"%d" % number, key=b"%d" % (number % 7))
    kept = records(kafka_server.bootstrap)
    assert len(kept) == 500
    (first,) = tmp_path.rglob(f"{TOPIC}-0")
    kafka_server.stop()

    with UpProcess(tmp_path / "headrace") as up:
        with Admin(up.bootstrap) as admin:
            admin.create_topic(TOPIC, partitions=PARTITIONS)
        up.stop()
        for number in range(PARTITIONS):
            take_files(first.parent / f"{TOPIC}-{number}", up.data / "broker-1" / f"{TOPIC}-{number}")
    with UpProcess(tmp_path / "headrace", arguments=forgetting()) as up:
        wait_until_producers_are_forgotten(up.bootstrap)
        up.stop()

    with UpProcess(tmp_path / "headrace") as up:
        assert records(up.bootstrap) == kept
        with Producer(up.bootstrap) as producer:  # with an id that one of Kafka's had, too
            for number in range(PARTITIONS):
                producer.send(TOPIC, b"new", partition=number)
        assert len(records(up.bootstrap)) == len(kept) + PARTITIONS


def records(bootstrap: str) -> list[tuple[int, int, int | None, bytes | None, bytes]]:
    with Consumer(bootstrap, TOPIC) as consumer:
        return sorted(
            (message.partition, message.offset, message.timestamp_ms, message.key, message.value)
            for message in consumer.read(stop_at_end=True)
        )


def take_files(old: Path, new: Path) -> None:
    """As the page has it: not the topic's id, and not what is known of producers."""
    left_out = re.findall(r"--exclude '?([^' ]+)", PAGE)
    assert left_out == ["partition.metadata", "*.snapshot"]
    new.mkdir(exist_ok=True)  # as rsync does: a log to which nothing was written has no directory
    for each in new.iterdir():
        if each.name != "partition.metadata":
            each.unlink()
    for each in old.iterdir():
        if not any(each.match(pattern) for pattern in left_out):
            shutil.copy2(each, new)


def forgetting() -> list[str]:
    """The options of the start at which the page has producers forgotten."""
    found = re.findall(r"--set (\S+)", PAGE)
    assert len(found) == 2
    return [f"--set={each}" for each in found]


def wait_until_producers_are_forgotten(bootstrap: str) -> None:
    asked = DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=range(PARTITIONS))])
    deadline = time.monotonic() + TIMEOUT_S
    with Brokers(bootstrap) as brokers:
        while any(each.active_producers for each in brokers.any(asked).topics[0].partitions):
            assert time.monotonic() < deadline, "producers are still known"
            time.sleep(0.05)
