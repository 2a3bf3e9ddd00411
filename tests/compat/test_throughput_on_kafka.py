"""The console's throughput of Apache Kafka, which has no metrics of ours: derived from end offsets."""

from typing import Any

from confluent_kafka import Producer

from compat.kafka_tools.server import KafkaServer
from headrace.gateway.serving import serve_in_thread
from http_support.asking import Asking, wait_until


def test_messages_per_second_are_known(kafka_server: KafkaServer) -> None:
    producer = Producer({"bootstrap.servers": kafka_server.bootstrap})
    with serve_in_thread(kafka_server.bootstrap) as served:
        asking = Asking(served.url)
        asking.post("/api/v1/topics", {"name": "throughput", "partitions": 1, "replicas": 1})

        def written() -> list[Any]:
            for _ in range(100):
                producer.produce("throughput", b"x")
            assert producer.flush(20) == 0
            points = asking.get("/api/v1/rates?topic=throughput")["points"]
            return [each for each in points if each["complete"] and each["topic"]["messages_in"]]

        point = wait_until(written, "no rate of the topic")[-1]
        asking.close()
    (broker,) = point["brokers"].values()
    assert broker["messages_in"] >= point["topic"]["messages_in"] > 0
    assert (broker["bytes_in"], broker["bytes_out"], point["topic"]["bytes_in"]) == (None, None, None)
