"""Reads, processes and writes, each record once: one worker of a group, which anybody may kill at any time.

python exactly_once_worker.py BOOTSTRAP TRANSACTIONAL_ID GROUP SOURCE TARGET
"""

import sys

from confluent_kafka import Consumer, KafkaException, Producer

BATCH = 20
TIMEOUT_S = 20


def main(bootstrap: str, transactional_id: str, group: str, source: str, target: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 5000,
            "log_level": 0,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "session.timeout.ms": 6000,
            "log_level": 0,
        }
    )
    consumer.subscribe([source])
    while True:
        messages = [each for each in consumer.consume(BATCH, 0.2) if not each.error()]
        if not messages:
            continue
        producer.begin_transaction()
        for message in messages:
            producer.produce(target, message.value())
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), TIMEOUT_S
        )
        producer.commit_transaction(TIMEOUT_S)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KafkaException as error:
        sys.exit(str(error))  # the next one begins at the offsets that are committed
