"""What transactions cost: producing in small and in large transactions, and reading what was committed."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from compare.servers import Server
from compare.table import Expected, Figures, Line
from compat.kafka_tools.server import client_settings

TIMEOUT_S: Final = 60
PARTITIONS: Final = 6
RECORD_BYTES: Final = 100
_names: Final = (f"transactions-{number}" for number in count())


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLine:
    """One producer, one transaction after the other, each over all partitions."""

    records_each: int
    transactions: int
    topic: str

    def prepare(self, server: Server) -> None:
        server.create_topic(self.topic, partitions=PARTITIONS)
        write(server.bootstrap, self.topic, self.records_each, 2)  # creates __transaction_state, and connects

    def finish(self, server: Server) -> None:
        server.delete_topic(self.topic)

    def produce(self, server: Server) -> Figures:
        cpu = server.cpu_seconds()
        seconds = write(server.bootstrap, self.topic, self.records_each, self.transactions)
        return {
            "transactions/s": self.transactions / seconds,
            "records/s": self.transactions * self.records_each / seconds,
            "CPU ms/transaction": (server.cpu_seconds() - cpu) * 1000 / self.transactions,
        }

    def prepare_to_read(self, server: Server) -> None:
        server.create_topic(self.topic, partitions=PARTITIONS)
        write(server.bootstrap, self.topic, self.records_each, self.transactions, aborts=True)

    def read(self, server: Server) -> Figures:
        cpu = server.cpu_seconds()
        records = self.records_each * (self.transactions - self.transactions // 4)
        seconds = read(server.bootstrap, self.topic, records)
        data = records * RECORD_BYTES
        return {"records/s": records / seconds, "CPU s/GB": (server.cpu_seconds() - cpu) / data * 1e9}


def write(bootstrap: str, topic: str, records_each: int, transactions: int, *, aborts: bool = False) -> float:
    """Seconds that so many transactions take; with `aborts`, every fourth is aborted."""
    producer: Any = Producer(
        {
            **client_settings(bootstrap),
            "transactional.id": f"compare-{topic}",
            "queue.buffering.max.messages": 1_000_000,
            "linger.ms": 1,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    value = os.urandom(RECORD_BYTES)
    start = time.perf_counter()
    for number in range(1, transactions + 1):
        producer.begin_transaction()
        for record in range(records_each):
            producer.produce(topic, value, partition=record % PARTITIONS)
        if aborts and number % 4 == 0:
            producer.flush(TIMEOUT_S)
            producer.abort_transaction(TIMEOUT_S)
        else:
            producer.commit_transaction(TIMEOUT_S)
    return time.perf_counter() - start


def read(bootstrap: str, topic: str, records: int) -> float:
    """Seconds from the first committed record's arrival to the last's."""
    settings = {"group.id": "compare", "enable.auto.commit": False, "isolation.level": "read_committed"}
    consumer: Any = Consumer(client_settings(bootstrap) | settings)
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    try:
        left = records - len(consumer.consume(1, TIMEOUT_S))
        start = time.perf_counter()
        while left > 0:
            left -= len(consumer.consume(min(left, 10_000), 1.0))
            if time.perf_counter() - start > TIMEOUT_S:
                raise TimeoutError(f"{left} of {records} records have not come after {TIMEOUT_S} s")
        return time.perf_counter() - start
    finally:
        consumer.close()


def lines(*, quick: bool) -> Iterator[Line[Server]]:
    for records_each, transactions in ((100, 200), (10_000, 20)):
        line = TransactionLine(
            records_each=records_each, transactions=transactions // (2 if quick else 1), topic=next(_names)
        )
        yield Line(
            name=f"transactions of {records_each:,} records, {PARTITIONS} part",
            prepare=line.prepare,
            run=line.produce,
            finish=line.finish,
            quick=True,
            warm_up=True,
            expected=[
                Expected(figure="transactions/s", at_least=1.0, beside="records/s"),
                Expected(figure="CPU ms/transaction", at_most=1.0),
            ],
        )
    reading = TransactionLine(records_each=1000, transactions=100 if quick else 400, topic=next(_names))
    yield Line(
        name=f"read_committed, transactions of 1,000 records, {PARTITIONS} part",
        prepare=reading.prepare_to_read,
        run=reading.read,
        finish=reading.finish,
        quick=True,
        expected=[Expected(figure="records/s", at_least=1.0), Expected(figure="CPU s/GB", at_most=1.2)],
    )
