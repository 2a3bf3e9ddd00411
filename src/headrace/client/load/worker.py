"""One client of a load, as a process of its own.

python -m headrace.client.load.worker TASK

It says how far it is as lines of JSON: {"records": …, "seconds": …}, and at the end {"done": true, …}.
"""

import sys
from typing import Final

from confluent_kafka import KafkaError, Message, TopicPartition

from headrace.client.load.clients import (
    MOST_ON_THE_WAY,
    TIMEOUT_S,
    Teller,
    consumer_of,
    producer_of,
    say,
)
from headrace.client.load.figures import Task, values
from headrace.client.load.latency import measure

POOL: Final = 1_000  # different records
MOST_BYTES_ON_THE_WAY: Final = 64 * 1024 * 1024
AT_ONCE: Final = 5_000  # records that a consumer takes


def produce(task: Task, teller: Teller) -> None:
    """As fast as the cluster takes it; all that was sent is acknowledged at the end."""
    failures: list[KafkaError] = []
    producer = producer_of(task, {"linger.ms": 5, "delivery.report.only.error": True})
    most = max(1, min(MOST_ON_THE_WAY, MOST_BYTES_ON_THE_WAY // task.record_size))
    pool = [{"value": value} for value in values(task.record_size, min(POOL, most))]

    def failed(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    producer.list_topics(task.topic, timeout=TIMEOUT_S)
    teller.begin()
    sent = 0
    while teller.seconds < task.seconds and not failures:
        producer.poll(0)
        if len(producer) + len(pool) > most and len(producer):
            producer.poll(0.001)
        else:
            sent += producer.produce_batch(task.topic, pool, on_delivery=failed)
        teller.tell(sent - len(producer))
    left = producer.flush(TIMEOUT_S)
    if failures or left:
        raise SystemExit(_fail(failures[0].str() if failures else f"{left} records were not acknowledged"))
    teller.end(sent)


def consume(task: Task, teller: Teller) -> None:
    """From the beginning to the end, or as long as there is time."""
    consumer = consumer_of(task)
    consumer.assign([TopicPartition(task.topic, index, 0) for index in task.partitions])
    left = set(task.partitions)
    records = 0
    teller.begin()
    while left and teller.seconds < task.seconds:
        for message in consumer.consume(AT_ONCE, timeout=0.2):
            error = message.error()
            if error is None:
                records += 1
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  not private
                left.discard(message.partition())
            elif not error.retriable():
                raise SystemExit(_fail(error.str()))
        teller.tell(records)
    teller.end(records)
    consumer.close()


def _fail(why: str) -> int:
    say(error=why)
    return 1


def main() -> None:
    """Do the task."""
    task = Task.decode(sys.argv[1])
    {"produce": produce, "consume": consume, "latency": measure}[task.phase](task, Teller())


if __name__ == "__main__":
    main()
