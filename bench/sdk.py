"""headrace.Producer and headrace.Consumer beside plain confluent-kafka: records of 100 bytes, in turns.

PYTHONPATH=bench:tests .venv/bin/python bench/sdk.py [--quick]

Each round runs every way of doing it once, in an order of its own, and a ratio is the median of those of all
rounds: machines are noisy. Beside the clock's there is the time that the client's threads have spent on a
CPU, which says what it costs however busy the machine is. Both sides have the same settings (where
librdkafka's own are used instead, the line says so), and both look at every record.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import confluent_kafka
from confluent_kafka import TopicPartition

from headrace import Admin, Consumer, Producer
from headrace.client.consumer.consumer import DEFAULTS
from support.process import UpProcess

VALUE: Final = b"x" * 100
TOPIC: Final = "sdk"
PARTITIONS: Final = 3
PRODUCER: Final[dict[str, Any]] = {"acks": "all", "enable.idempotence": True, "log_level": 0}
CONSUMER: Final[dict[str, Any]] = {
    "group.id": "nobody",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "log_level": 0,
}
BATCH: Final = 500
WARM: Final = 20_000  # records before the clock starts: connections, metadata, the first fetches


class Took(NamedTuple):
    """Seconds: by the clock, and on a CPU."""

    wall_s: float
    cpu_s: float

    @classmethod
    def now(cls) -> "Took":
        return cls(time.perf_counter(), time.process_time())

    def since(self) -> "Took":
        now = Took.now()
        return Took(now.wall_s - self.wall_s, now.cpu_s - self.cpu_s)


NEVER: Final = Took(0, 0)
Timed = Callable[[str, int], Took]


# -- producing: from the first record to the last acknowledgement ----------------------------------


def confluent_produce(bootstrap: str, count: int) -> Took:
    return _confluent_produce(bootstrap, count)


def confluent_with_callback(bootstrap: str, count: int) -> Took:
    arrived = 0

    def on_delivery(error: object, _message: object) -> None:
        nonlocal arrived
        arrived += error is None

    took = _confluent_produce(bootstrap, count, on_delivery=on_delivery)
    assert arrived >= count, f"{arrived} of {count} arrived"
    return took


def confluent_as_documented(bootstrap: str, count: int) -> Took:
    """As in confluent-kafka's own README: a callback for each record, and a poll after it."""
    arrived = 0

    def on_delivery(error: object, _message: object) -> None:
        nonlocal arrived
        arrived += error is None

    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **PRODUCER})
    producer.produce(TOPIC, VALUE)
    producer.flush()
    began = Took.now()
    for _ in range(count):
        while True:
            try:
                producer.poll(0)
                producer.produce(TOPIC, VALUE, callback=on_delivery)
            except BufferError:
                producer.poll(0.1)
            else:
                break
    assert producer.flush() == 0
    assert arrived == count
    return began.since()


def _confluent_produce(bootstrap: str, count: int, **more: Any) -> Took:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **PRODUCER, **more})
    produce, poll = producer.produce, producer.poll
    producer.produce(TOPIC, VALUE)
    producer.flush()
    began = Took.now()
    for _ in range(count):
        while True:
            try:
                produce(TOPIC, VALUE)
            except BufferError:
                poll(0.1)
            else:
                break
    assert producer.flush() == 0
    return began.since()


def headrace_send(bootstrap: str, count: int) -> Took:
    with Producer(bootstrap, settings=PRODUCER) as producer:
        producer.send(TOPIC, VALUE)
        producer.flush()
        began = Took.now()
        for _ in range(count):
            producer.send(TOPIC, VALUE)
        assert producer.flush().acknowledged == count + 1
        return began.since()


def headrace_send_all(bootstrap: str, count: int) -> Took:
    with Producer(bootstrap, settings=PRODUCER) as producer:
        producer.send(TOPIC, VALUE)
        producer.flush()
        began = Took.now()
        producer.send_all(TOPIC, (VALUE for _ in range(count)))
        assert producer.flush().acknowledged == count + 1
        return began.since()


def headrace_post(bootstrap: str, count: int) -> Took:
    with Producer(bootstrap, settings=PRODUCER, receipts=True) as producer:
        producer.post(TOPIC, VALUE).result()
        began = Took.now()
        for _ in range(count):
            producer.post(TOPIC, VALUE)
        assert producer.flush().acknowledged == count + 1
        return began.since()


# -- consuming: every record's value ---------------------------------------------------------------


def _places(bootstrap: str) -> list[TopicPartition]:
    with Admin(bootstrap) as admin:
        return [TopicPartition(TOPIC, index, span.start) for index, span in admin.offsets(TOPIC).items()]


def confluent_consume(bootstrap: str, count: int, **settings: Any) -> Took:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, **CONSUMER, **(settings or {**DEFAULTS})}
    )
    consumer.assign(_places(bootstrap))
    seen, began = 0, NEVER
    while seen < WARM + count:
        if began is NEVER and seen >= WARM:
            began, count, seen = Took.now(), count + WARM - seen, WARM
        messages = [consumer.poll(1), *consumer.consume(BATCH, timeout=0)]  # as soon as there is one
        for message in messages:
            if message is not None and message.error() is None:
                assert message.value() is not None
                seen += 1
    took = began.since()
    consumer.close()
    return took


def confluent_defaults(bootstrap: str, count: int) -> Took:
    return confluent_consume(bootstrap, count, **{"fetch.queue.backoff.ms": 1000})


def confluent_poll(bootstrap: str, count: int) -> Took:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, **CONSUMER, **DEFAULTS})
    consumer.assign(_places(bootstrap))
    seen, began = 0, NEVER
    while seen < WARM + count:
        if seen == WARM:
            began = Took.now()
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            assert message.value() is not None
            seen += 1
    took = began.since()
    consumer.close()
    return took


def headrace_iterate(bootstrap: str, count: int) -> Took:
    with Consumer(bootstrap, TOPIC, log_level=0) as consumer:
        messages = iter(consumer)
        for message in islice(messages, WARM):
            assert message.value is not None
        began = Took.now()
        for message in islice(messages, count):
            assert message.value is not None
        return began.since()


def headrace_batches(bootstrap: str, count: int) -> Took:
    with Consumer(bootstrap, TOPIC, log_level=0) as consumer:
        seen, began = 0, NEVER
        for batch in consumer.batches(BATCH):
            for value in batch.values():
                assert value is not None
            seen += len(batch)
            if began is NEVER and seen >= WARM:
                began, seen = Took.now(), WARM
            if seen >= WARM + count:
                break
        return began.since()


# -- the table -------------------------------------------------------------------------------------

PRODUCING: Final[dict[str, Timed]] = {
    "confluent produce(), no callback": confluent_produce,
    "confluent produce(), on_delivery": confluent_with_callback,
    "confluent produce(), as its README": confluent_as_documented,
    "headrace send()": headrace_send,
    "headrace send_all()": headrace_send_all,
    "headrace post(), a receipt each": headrace_post,
}
CONSUMING: Final[dict[str, Timed]] = {
    "confluent consume(500)": confluent_consume,
    "confluent consume(500), its defaults": confluent_defaults,
    "confluent poll()": confluent_poll,
    "headrace for message in consumer": headrace_iterate,
    "headrace batches(500), values()": headrace_batches,
}


def run(ways: dict[str, Timed], bootstrap: str, count: int, rounds: int) -> dict[str, list[Took]]:
    took: dict[str, list[Took]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name in random.sample(list(ways), len(ways)):
            took[name].append(ways[name](bootstrap, count))
    return took


def show(title: str, took: dict[str, list[Took]], count: int) -> None:
    """A line for each: its throughput as a share of the others' before it, by the clock and by CPU time."""
    bases = [name for name in took if name.startswith("confluent")]
    print(f"\n{title:<40} {'records/s':>12} {'CPU us each':>12}   as a share of A, B, ... by the clock / CPU")
    for letter, (name, times) in zip("ABCDEFG", took.items(), strict=False):
        rate = count / statistics.median(each.wall_s for each in times)
        cpu_us = statistics.median(each.cpu_s for each in times) / count * 1e6
        shares = "  ".join(_share(took[base], times) for base in bases)
        print(f"{letter} {name:<38} {rate:>12,.0f} {cpu_us:>12.2f}   {shares}")


def _share(base: list[Took], times: list[Took]) -> str:
    pairs = list(zip(base, times, strict=True))
    wall = statistics.median(one.wall_s / mine.wall_s for one, mine in pairs)
    cpu = statistics.median(one.cpu_s / mine.cpu_s for one, mine in pairs)
    return f"{wall:.2f} / {cpu:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, three rounds")
    quick = parser.parse_args().quick
    count, rounds = (100_000, 3) if quick else (500_000, 9)
    with tempfile.TemporaryDirectory() as directory, UpProcess(Path(directory)) as up:
        bootstrap = up.bootstrap.split()[0]
        with Admin(bootstrap) as admin:
            admin.create_topic(TOPIC, partitions=PARTITIONS)
        show("producing, 100 bytes each", run(PRODUCING, bootstrap, count, rounds), count)
        many = count * 2 - WARM
        show("consuming, 100 bytes each", run(CONSUMING, bootstrap, many, rounds), many)


if __name__ == "__main__":
    main()
