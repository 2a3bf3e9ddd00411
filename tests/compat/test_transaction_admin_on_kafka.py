"""What `headrace txn` does, done to Apache Kafka: list, describe, find a hanging transaction, abort it."""

from confluent_kafka import Producer

from compat.kafka_tools.server import KafkaServer
from headrace import Admin
from headrace.protocol.errors import ErrorCode
from wire.group_stories.waiting import eventually
from wire.raw import RawClient
from wire.transactions import OLD, RawProducer


def test_kafka_answers_all_that_is_asked_of_transactions(kafka_server: KafkaServer) -> None:
    kafka_server.create_topic("orders")
    producer = Producer({"bootstrap.servers": kafka_server.bootstrap, "transactional.id": "billing-1"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("orders", b"x", partition=0)
    producer.flush(60)
    with Admin(kafka_server.bootstrap) as admin:
        (listed,) = admin.list_transactions(states=["Ongoing"], min_duration_ms=0, pattern="billing-.*")
        (described,) = admin.describe_transactions(["billing-1"])
        assert (listed.transactional_id, listed.state) == ("billing-1", "Ongoing")
        assert (described.state, described.producer_id) == ("Ongoing", listed.producer_id)
        assert described.partitions == {("orders", 0)}
        (open_there,) = admin.describe_producers("orders", 0)
        assert (open_there.producer_id, open_there.start_offset) == (listed.producer_id, 0)
        assert admin.find_hanging_transactions(min_duration_ms=0) == []
        producer.commit_transaction(60)
        assert admin.find_hanging_transactions() == []


def test_a_transaction_that_hangs_on_kafka_is_found_and_aborted(kafka_server: KafkaServer) -> None:
    kafka_server.create_topic("orders")
    with Admin(kafka_server.bootstrap) as admin, RawClient(kafka_server.bootstrap) as client:
        (broker,) = admin.describe_topic("orders").partitions[0].replicas
        admin.alter_broker_configs(broker, sets={"transaction.partition.verification.enable": "false"})
        producer = RawProducer(client, "billing-1", OLD)
        producer.begin()
        eventually(lambda: producer.init() is ErrorCode.NONE)  # the coordinator of a new cluster is loaded
        assert producer.send("orders").error_code == 0
        (found,) = admin.find_hanging_transactions(["orders"], min_duration_ms=0)
        assert (found.producer_id, found.start_offset) == (producer.producer.producer_id, 0)
        assert found.transactional_id == "billing-1"
        admin.abort_transaction("orders", 0, found.producer_id, found.producer_epoch, found.coordinator_epoch)
        assert admin.find_hanging_transactions(["orders"], min_duration_ms=0) == []
