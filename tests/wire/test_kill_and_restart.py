"""kill -9 in the middle of a load, several times: what was acknowledged is there, and the log goes on."""

import itertools
import threading
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer

from headrace.protocol.schema.delete_topics import DeleteTopicsRequest
from headrace.protocol.schema.metadata import MetadataRequest
from support.records import headers_of, make_batch
from wire.confluent import make_topic, read, settings
from wire.process import BrokerProcess
from wire.raw import RawClient, frame_of
from wire.requests import create_topic, fetch, produce_request, records_in

PARTITIONS: Final = 3
IN_FLIGHT: Final = 5
BEFORE_A_KILL: Final = 60  # acknowledged batches, over all partitions
KILLS: Final = pytest.mark.parametrize("kills", [4, pytest.param(10, marks=pytest.mark.long)])


class Load:
    """Writes batches to every partition, five in flight on each; knows what was acknowledged.

    Values are numbers that only grow, so that a partition shows what is missing or twice there.
    """

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._numbers = [itertools.count() for _ in range(PARTITIONS)]
        self.acknowledged: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]  # value to offset
        self.count = threading.Semaphore(0)

    def run_until_the_broker_dies(self) -> list[threading.Thread]:
        threads = [threading.Thread(target=self._write, args=(each,)) for each in range(PARTITIONS)]
        for thread in threads:
            thread.start()
        return threads

    def _write(self, partition: int) -> None:
        sent: list[list[int]] = []
        try:
            with RawClient(self._broker.bootstrap) as client:
                while True:
                    while len(sent) < IN_FLIGHT:
                        sent.append(self._send(client, partition))
                    self._receive(client, partition, sent.pop(0))
        except (ConnectionError, TimeoutError):
            return

    def _send(self, client: RawClient, partition: int) -> list[int]:
        values = [next(self._numbers[partition]) for _ in range(1 + partition * 3)]
        batch = make_batch([b"%d" % value for value in values])
        client.socket.sendall(frame_of(produce_request("t", batch, partition=partition), 9))
        return values

    def _receive(self, client: RawClient, partition: int, values: list[int]) -> None:
        answer = client.receive(produce_request("t"), 9).responses[0].partition_responses[0]
        assert answer.error_code == 0, answer
        for delta, value in enumerate(values):
            self.acknowledged[partition][value] = answer.base_offset + delta
        self.count.release()


def everything(client: RawClient, partition: int) -> dict[int, int]:
    """Every value of a partition with its offset; batches are checked, offsets have no gaps."""
    found: dict[int, int] = {}
    offset = 0
    while data := fetch(client, "t", offset, partitions=[partition]):
        assert data.error_code == 0, data
        if not data.records:
            assert data.high_watermark == offset
            return found
        for header in headers_of(data.records):
            assert header.base_offset == offset, f"a gap or an overlap at offset {offset}"
            offset = header.next_offset
        records = records_in(data)
        assert len({*found} & {int(record.value or b"") for record in records}) == 0, "a value is there twice"
        found |= {int(record.value or b""): record.offset for record in records}
    raise AssertionError("unreachable")


@KILLS
@pytest.mark.parametrize(
    "configs",
    [{"flush_messages": "1"}, {}, {"segment_bytes": "4000", "index_interval_bytes": "300"}],
    ids=["flushed", "not flushed", "many segments"],
)
def test_what_was_acknowledged_survives_all_kills(
    tmp_path: Path, configs: dict[str, str], kills: int
) -> None:
    with BrokerProcess(tmp_path) as broker:
        with RawClient(broker.bootstrap) as client:
            create_topic(client, "t", partitions=PARTITIONS, **configs)
        load = Load(broker)
        for _ in range(kills):
            threads = load.run_until_the_broker_dies()
            for _ in range(BEFORE_A_KILL):
                assert load.count.acquire(timeout=20)
            broker.kill()
            for thread in threads:
                thread.join()
            broker.start()

            with RawClient(broker.bootstrap) as client:
                for partition in range(PARTITIONS):
                    found = everything(client, partition)
                    kept = {value: found.get(value) for value in load.acknowledged[partition]}
                    assert kept == load.acknowledged[partition]
                    assert list(found) == sorted(found), "values are out of order"
        assert broker.complaints() == []


def test_an_idempotent_producer_loses_and_repeats_nothing_over_kills(tmp_path: Path) -> None:
    count, kills = 3000, 4
    delivered = threading.Semaphore(0)
    failed: list[object] = []

    def on_delivery(error: object, _message: object) -> None:
        if error is not None:
            failed.append(error)
        delivered.release()

    with BrokerProcess(tmp_path) as broker:
        make_topic(broker.bootstrap, "t")
        options = {"enable_idempotence": True, "batch_num_messages": 20, "reconnect_backoff_ms": 10}
        producer = Producer(settings(broker.bootstrap, **options))
        for part in range(kills):
            for number in range(part * count // kills, (part + 1) * count // kills):
                producer.produce("t", b"%d" % number, on_delivery=on_delivery)
            while not delivered.acquire(blocking=False):
                producer.poll(0.01)
            broker.kill()
            broker.start()
        assert producer.flush(60) == 0

        assert failed == []
        assert [int(message.value()) for message in read(broker.bootstrap, "t")] == list(range(count))


@KILLS
def test_no_kill_leaves_half_a_topic_behind(tmp_path: Path, kills: int) -> None:
    """A topic is there and can be written to, or it is gone with its files, whenever the broker dies."""

    def make_and_delete(prefix: str) -> None:
        try:
            with RawClient(broker.bootstrap) as client:
                for number in itertools.count():
                    create_topic(client, f"{prefix}-{number}", partitions=3)
                    client.ask(DeleteTopicsRequest(topic_names=[f"{prefix}-{number}"], timeout_ms=5000), 5)
                    changes.release()
        except (ConnectionError, TimeoutError):
            return

    changes = threading.Semaphore(0)
    with BrokerProcess(tmp_path) as broker:
        for kill in range(kills):
            threads = [
                threading.Thread(target=make_and_delete, args=(f"{kill}-{number}",)) for number in range(3)
            ]
            for thread in threads:
                thread.start()
            for _ in range(1 + kill):
                assert changes.acquire(timeout=20)
            broker.kill()
            for thread in threads:
                thread.join()
            broker.start()

            with RawClient(broker.bootstrap) as client:
                topics = client.ask(MetadataRequest(topics=None), 12).topics
                for topic in topics:
                    for partition in range(3):
                        answer = client.ask(produce_request(topic.name, partition=partition), 9)
                        assert answer.responses[0].partition_responses[0].error_code == 0, topic
            directories = {each.name.rpartition("-")[0] for each in broker.log_dir.iterdir() if each.is_dir()}
            assert directories == {topic.name for topic in topics}
        assert broker.complaints() == []


def test_topics_and_settings_survive_a_kill_right_after_their_reply(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        for number in range(3):
            with RawClient(broker.bootstrap) as client:
                create_topic(client, f"topic-{number}", partitions=2, retention_ms=f"{1000 + number}")
            broker.kill()
            broker.start()
            with RawClient(broker.bootstrap) as client:
                for earlier in range(number + 1):
                    for partition in (0, 1):
                        assert fetch(client, f"topic-{earlier}", partitions=[partition]).error_code == 0
