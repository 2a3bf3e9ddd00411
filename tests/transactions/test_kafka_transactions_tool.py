"""Apache Kafka's kafka-transactions.sh on three brokers: every command of it, as an operator types it."""

import subprocess
from functools import partial
from typing import Any, Final

import pytest
from confluent_kafka import KafkaException, Producer

from cluster.asking import NoAnswer, coordinator_of
from compat.kafka_tools.java import KafkaJava, KafkaUnavailableError, find_kafka
from headrace import Admin
from transactions.brokers import BROKERS, Brokers
from transactions.coordinators import TRANSACTION
from wire.confluent import read, settings
from wire.group_stories.waiting import eventually
from wire.raw import RawClient
from wire.transactions import OLD, RawProducer

pytestmark = pytest.mark.long

TOPIC: Final = "orders"
RUN_S: Final = 90


class TransactionsTool:
    """Runs commands of kafka-transactions.sh."""

    def __init__(self, java: KafkaJava, bootstrap: str) -> None:
        self._java = java
        self._bootstrap = bootstrap

    def table(self, *arguments: str) -> list[dict[str, str]]:
        """Return the rows that a command prints, by column."""
        header, *rows = self.run(*arguments).splitlines()
        names = [name.strip() for name in header.split("\t")]
        cells = ([cell.strip() for cell in row.split("\t")] for row in rows)
        return [dict(zip(names, row, strict=True)) for row in cells]

    def run(self, *arguments: str) -> str:
        command = self._java.command(
            "org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", self._bootstrap, *arguments
        )
        ran = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
        assert ran.returncode == 0, f"{arguments}: {ran.stdout}{ran.stderr}"
        return ran.stdout.strip("\n")


@pytest.fixture
def tool(brokers: Brokers) -> TransactionsTool:
    try:
        return TransactionsTool(find_kafka(), brokers.bootstrap)
    except KafkaUnavailableError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def topic(brokers: Brokers) -> str:
    brokers.create_topic(TOPIC, partitions=3)
    return TOPIC


def transactional_producer(bootstrap: str, transactional_id: str) -> Any:
    producer = Producer(settings(bootstrap, transactional_id=transactional_id))
    producer.init_transactions(60)
    producer.begin_transaction()
    return producer


def committed_values(bootstrap: str) -> list[bytes]:
    found = read(bootstrap, TOPIC, partitions=range(3), isolation_level="read_committed")
    return [message.value() for message in found]


def test_transactions_are_listed_and_described(brokers: Brokers, tool: TransactionsTool, topic: str) -> None:
    ongoing = transactional_producer(brokers.bootstrap, "billing-1")
    for partition in (0, 2):
        ongoing.produce(topic, b"x", partition=partition)
    assert ongoing.flush(60) == 0
    ended = transactional_producer(brokers.bootstrap, "shipping-1")
    ended.produce(topic, b"y", partition=1)
    ended.commit_transaction(60)

    listed = {row["TransactionalId"]: row for row in tool.table("list")}
    assert listed.keys() == {"billing-1", "shipping-1"}
    assert listed["billing-1"]["TransactionState"] == "Ongoing"
    assert listed["shipping-1"]["TransactionState"] == "CompleteCommit"
    matching = tool.table("list", "--transactional-id-pattern", "bill.*", "--duration-filter", "0")
    assert [row["TransactionalId"] for row in matching] == ["billing-1"]
    assert tool.table("list", "--duration-filter", "3600000") == []

    (row,) = tool.table("describe", "--transactional-id", "billing-1")
    assert row["CoordinatorId"] == listed["billing-1"]["Coordinator"]
    assert row["ProducerId"] == listed["billing-1"]["ProducerId"]
    assert (row["TransactionState"], row["TransactionTimeoutMs"]) == ("Ongoing", "60000")
    assert set(row["TopicPartitions"].split(",")) == {f"{topic}-0", f"{topic}-2"}
    assert int(row["TransactionDurationMs"]) >= 0

    (there,) = tool.table("describe-producers", "--topic", topic, "--partition", "2")
    assert there["ProducerId"] == row["ProducerId"]
    assert (there["CurrentTransactionStartOffset"], there["LastSequence"]) == ("0", "0")
    for broker in BROKERS:  # every replica knows the producer
        replica = ("--topic", topic, "--partition", "2", "--broker-id", str(broker))
        (same,) = eventually(partial(tool.table, "describe-producers", *replica))
        assert same["ProducerId"] == there["ProducerId"]
    ongoing.commit_transaction(60)
    assert sorted(committed_values(brokers.bootstrap)) == [b"x", b"x", b"y"]


def test_a_hanging_transaction_is_found_and_aborted(
    brokers: Brokers, tool: TransactionsTool, topic: str
) -> None:
    with Admin(brokers.bootstrap) as admin:
        for broker in BROKERS:
            admin.alter_broker_configs(broker, sets={"transaction.partition.verification.enable": "false"})
        leader = admin.describe_topic(topic).partitions[0].leader
    assert leader is not None
    producer_id = write_hanging_transaction(brokers, topic, leader)
    assert committed_values(brokers.bootstrap) == []

    now = ("--max-transaction-timeout", "0")
    for place in (("--topic", topic), ("--topic", topic, "--partition", "0"), ("--broker-id", str(leader))):
        (found,) = eventually(partial(tool.table, "find-hanging", *now, *place))
        assert (found["Topic"], found["Partition"]) == (topic, "0")
        assert found["ProducerId"] == str(producer_id)
    assert tool.table("find-hanging", "--topic", topic) == []  # younger than 15 minutes

    tool.run("abort", "--topic", topic, "--partition", "0", "--start-offset", found["StartOffset"])

    assert tool.table("find-hanging", *now, "--topic", topic) == []
    later = transactional_producer(brokers.bootstrap, "billing-2")
    later.produce(topic, b"later", partition=0)
    later.commit_transaction(60)
    assert committed_values(brokers.bootstrap) == [b"later"]


def write_hanging_transaction(brokers: Brokers, topic: str, leader: int) -> int:
    """Write a batch of a transaction that its coordinator does not know, and return the producer id."""
    addresses = brokers.bootstrap.split(",")
    coordinator = eventually(partial(known_coordinator, addresses, "billing-1"))
    with RawClient(addresses[coordinator - 1]) as client, RawClient(addresses[leader - 1]) as other:
        producer = RawProducer(client, "billing-1", OLD)
        producer.begin()
        producer.client = other
        assert producer.send(topic).error_code == 0  # without AddPartitionsToTxn
        return producer.producer.producer_id


def known_coordinator(addresses: list[str], transactional_id: str) -> int:
    """Return the coordinator of a transactional id, 0 while there is none."""
    try:
        return coordinator_of(addresses, TRANSACTION, transactional_id)
    except NoAnswer:
        return 0


def test_a_transaction_is_terminated_and_its_producer_fenced(
    brokers: Brokers, tool: TransactionsTool, topic: str
) -> None:
    """The command calls Admin.fenceProducers: InitProducerId, by somebody who is not the producer."""
    producer = transactional_producer(brokers.bootstrap, "billing-1")
    producer.produce(topic, b"x", partition=0)
    assert producer.flush(60) == 0

    tool.run("forceTerminateTransaction", "--transactionalId", "billing-1")

    with pytest.raises(KafkaException) as refused:
        producer.commit_transaction(60)
    assert refused.value.args[0].fatal()
    (row,) = tool.table("list")
    assert row["TransactionState"] == "Empty"  # aborted, and the next epoch given
    successor = transactional_producer(brokers.bootstrap, "billing-1")
    successor.produce(topic, b"y", partition=0)
    successor.commit_transaction(60)
    assert committed_values(brokers.bootstrap) == [b"y"]
