"""What `headrace txn` does, done to Apache Kafka: list and describe."""

from confluent_kafka import Producer

from compat.kafka_tools.server import KafkaServer
from headrace import Admin


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
    producer.commit_transaction(60)
