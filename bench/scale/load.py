"""What replicated data costs three brokers: CPU time for each megabyte that is produced and consumed."""

import os
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from compare.cluster import Cluster, MakeCluster
from compat.kafka_tools.server import client_settings

TOPIC: Final = "load"
PARTITIONS: Final = 12
RECORD: Final = 1000
MEGABYTES: Final = 300
_IDLE_S: Final = 30.0
BATCHES: Final = {"16 KiB": 16 * 1024, "128 KiB": 128 * 1024}


def measure(make: MakeCluster) -> dict[str, float]:
    """Produce with acks=all to topics of three replicas, and consume; return CPU milliseconds per MB."""
    figures = {}
    with make() as cluster:
        for name, size in BATCHES.items():
            topic = f"{TOPIC}-{size}"
            cluster.create_topic(topic, partitions=PARTITIONS)
            before = cluster.cpu_seconds()
            _produce(cluster, topic, size)
            produced = cluster.cpu_seconds()
            _consume(cluster, topic)
            figures[f"produce {name} ms/MB"] = (produced - before) * 1000 / MEGABYTES
            figures[f"consume {name} ms/MB"] = (cluster.cpu_seconds() - produced) * 1000 / MEGABYTES
    return figures


def _produce(cluster: Cluster, topic: str, batch: int) -> None:
    settings = {"acks": "all", "batch.size": batch, "linger.ms": 50, "queue.buffering.max.kbytes": 65536}
    producer: Any = Producer(client_settings(cluster.bootstrap) | settings)
    value = os.urandom(RECORD)
    for number in range(MEGABYTES * 1_000_000 // RECORD):
        while True:
            try:
                producer.produce(topic, value, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(120):
        raise TimeoutError(f"{cluster.name}: not every record was acknowledged")


def _consume(cluster: Cluster, topic: str) -> None:
    consumer: Any = Consumer(
        client_settings(cluster.bootstrap) | {"group.id": "load", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(PARTITIONS)])
    left = MEGABYTES * 1_000_000 // RECORD
    while left > 0:
        messages = consumer.consume(10_000, _IDLE_S)
        if not messages:
            raise TimeoutError(f"{cluster.name}: {left} records were not read")
        left -= len(messages)
    consumer.close()
