"""Producer ids that clients invent: a broker remembers so many, and never forgets a producer that writes."""

from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from headrace.protocol.errors import ErrorCode
from support.records import make_batch
from wire.confluent import settings
from wire.process import BrokerProcess
from wire.raw import RawClient
from wire.requests import create_topic, produce_request

LIMIT: Final = 100
FLOOD: Final = 300
LARGE_FLOOD: Final = 100_000
DEFAULT_LIMIT: Final = 20_000
MEBIBYTE: Final = 2**20
LIVE: Final = 7
INVENTED: Final = 1_000_000


def write(client: RawClient, topic: str, producer_id: int, sequence: int = 0) -> Any:
    batch = make_batch(1, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    return client.ask(produce_request(topic, batch), 9).responses[0].partition_responses[0]


def test_a_flood_of_invented_ids_is_refused_and_a_producer_that_writes_is_not_forgotten(
    tmp_path: Path,
) -> None:
    with (
        BrokerProcess(tmp_path, {"headrace.max.producer.ids.per.partition": str(LIMIT)}) as broker,
        RawClient(broker.bootstrap) as client,
    ):
        create_topic(client, "orders")
        first = [write(client, "orders", LIVE, sequence).base_offset for sequence in range(3)]

        codes = [write(client, "orders", INVENTED + number).error_code for number in range(FLOOD)]

        accepted = LIMIT - 1
        assert codes == [*[ErrorCode.NONE] * accepted, *[ErrorCode.NOT_ENOUGH_REPLICAS] * (FLOOD - accepted)]
        assert [write(client, "orders", LIVE, sequence).base_offset for sequence in range(3)] == first
        assert write(client, "orders", LIVE, 3).error_code == 0
        assert broker.complaints() == []


def test_a_new_producer_replaces_an_idle_one_after_a_while(tmp_path: Path) -> None:
    limits = {"headrace.max.producer.ids.per.partition": "1", "headrace.producer.id.live.ms": "3000"}
    with BrokerProcess(tmp_path, limits) as broker:
        with RawClient(broker.bootstrap) as client:
            create_topic(client, "orders")
        delivered: list[Any] = []
        for value in (b"first", b"second"):
            producer = Producer(settings(broker.bootstrap, enable_idempotence=True))
            producer.produce("orders", value, on_delivery=lambda error, _: delivered.append(error))
            assert producer.flush(30) == 0
        assert delivered == [None, None]
        broker.wait_for_log("NOT_ENOUGH_REPLICAS")


def test_100_000_invented_ids_take_a_bounded_amount_of_memory(tmp_path: Path) -> None:
    """Each took 1.1 KB, without a limit."""
    with BrokerProcess(tmp_path) as broker, RawClient(broker.bootstrap) as client:
        create_topic(client, "orders")
        write(client, "orders", LIVE)
        before = broker.rss_bytes

        accepted = 0
        for first in range(0, LARGE_FLOOD, FLOOD):
            ids = range(INVENTED + first, INVENTED + min(first + FLOOD, LARGE_FLOOD))
            requests = [
                produce_request("orders", make_batch(1, producer_id=each, producer_epoch=0, base_sequence=0))
                for each in ids
            ]
            for request in requests:
                client.send(request, 9)
            answers = [client.receive(request, 9).responses[0].partition_responses[0] for request in requests]
            accepted += sum(answer.error_code == ErrorCode.NONE for answer in answers)

        assert accepted == DEFAULT_LIMIT - 1
        assert broker.rss_bytes - before < 40 * MEBIBYTE
