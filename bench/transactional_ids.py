"""What many transactional ids, and transactions that nobody ends, cost a broker.

    PYTHONPATH=tests .venv/bin/python bench/transactional_ids.py [--ids 100000] [--open 10000]

Each part has a broker of its own, with the settings of `headrace up`. One process sends raw requests over one
connection, 200 at a time. The longest hold is CPU time of the event loop's thread between two looks of a
probe that runs every millisecond (tests/amplification/measured.py): other load on the machine does not
change it.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

from amplification.broker import MeasuredBroker
from headrace.client.wire.requests import fetch_request
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.records import Record, encode_batch
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest
from headrace.protocol.schema.list_transactions import ListTransactionsRequest
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from headrace.protocol.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from wire.raw import RawClient

TOPIC: Final = TopicPartition("orders", 0)
WINDOW: Final = 200
MIB: Final = 1024 * 1024
RETRY_S: Final = 0.05
RESPONSE_S: Final = 120.0
FETCH_BYTES: Final = MIB
_TRANSACTION: Final = 1  # a type of coordinator


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ids", type=int, default=100_000, help="transactional ids; 0 for none")
    parser.add_argument("--open", type=int, default=10_000, help="transactions that nobody ends; 0 for none")
    parser.add_argument(
        "--within",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="all are open, and then time out at once",
    )
    parser.add_argument("--directory", type=Path, help="where to write; a temporary directory if not given")
    arguments = parser.parse_args()
    if arguments.ids:
        with tempfile.TemporaryDirectory(dir=arguments.directory) as root:
            many_ids(Path(root), arguments.ids)
    if arguments.open:
        with tempfile.TemporaryDirectory(dir=arguments.directory) as root:
            open_transactions(Path(root), arguments.open, arguments.within)


# -- transactional ids -----------------------------------------------------------------------------


def many_ids(root: Path, count: int) -> None:
    print(f"{count:,} transactional ids")
    with MeasuredBroker(root) as broker:
        with connected(broker) as client:
            create_coordinators(client)
            before = broker.rss_bytes
            with measured(broker, "InitProducerId") as took:
                pipelined(client, (init(number) for number in range(count)), 5)
            show("InitProducerId per second", f"{count / took():,.0f}")
            show("memory per id", f"{(broker.rss_bytes - before) / count:,.0f} bytes")
            for name, request in lists().items():
                listed: list[int] = []
                with measured(broker, f"ListTransactions, {name}"):
                    listed.append(len(client.ask(request, 2).transaction_states))
                show("  listed", f"{listed[0]:,}")
        broker.kill()
        broker.start()
        with measured(broker, "start, until every id is loaded"), connected(broker) as client:
            until(lambda: len(client.ask(listing(), 2).transaction_states) == count)
        show("memory of the broker after the start", f"{broker.rss_bytes / MIB:,.0f} MiB")


def lists() -> dict[str, ListTransactionsRequest]:
    return {
        "all": listing(),
        "by state": listing(state_filters=["Ongoing"]),
        "by duration": listing(duration_filter=60_000),
        "by regular expression": listing(transactional_id_pattern=".*-[0-9]*7"),
        "by producer id": listing(producer_id_filters=[1, 2, 3]),
    }


def listing(**filters: Any) -> ListTransactionsRequest:
    return ListTransactionsRequest(**{"state_filters": (), "producer_id_filters": (), **filters})


# -- open transactions -----------------------------------------------------------------------------


def open_transactions(root: Path, count: int, within_s: float) -> None:
    print(f"{count:,} open transactions on one partition")
    with MeasuredBroker(root) as broker, connected(broker) as client:
        create_coordinators(client)
        create_topic(client)
        before = broker.rss_bytes
        # Their timeouts end at the same moment: all are aborted at once.
        ends_s = time.monotonic() + within_s
        with measured(broker, "InitProducerId and a batch each") as took:
            opened(client, count, ends_s)
        show("transactions opened per second", f"{count / took():,.0f}")
        show("memory per open transaction", f"{(broker.rss_bytes - before) / count:,.0f} bytes")
        assert time.monotonic() < ends_s, "the first transactions have timed out: give --within more seconds"
        fetches(broker, client, "while they are open")
        with measured(broker, "from the end of the fetches until all are aborted"):
            until(lambda: last_stable_offset(client) >= 2 * count)
        show("  aborted after their timeout in", f"{time.monotonic() - ends_s:.1f} s")
        fetches(broker, client, "when they are aborted")
        show("memory of the broker", f"{broker.rss_bytes / MIB:,.0f} MiB")


def opened(client: RawClient, count: int, ends_s: float) -> None:
    """Open transactions, WINDOW at a time, that all time out at `ends_s`."""
    for first in range(0, count, WINDOW):
        numbers = range(first, min(first + WINDOW, count))
        timeout_ms = int((ends_s - time.monotonic()) * 1000)
        producers = pipelined(client, (init(number, timeout_ms) for number in numbers), 5)
        batches = [batch(number, each) for number, each in zip(numbers, producers, strict=True)]
        for response in pipelined(client, batches, 12):
            code = response.responses[0].partition_responses[0].error_code
            assert code == 0, code


def fetches(broker: MeasuredBroker, client: RawClient, when: str) -> None:
    for name, read_committed in (("read_committed", True), ("read_uncommitted", False)):
        request = fetch_request(
            TOPIC, 0, topic_id=bytes(16), max_bytes=FETCH_BYTES, read_committed=read_committed
        )
        with measured(broker, f"Fetch of 1 MiB, {name}, {when}"):
            data = client.ask(request, 12).responses[0].partitions[0]
        aborted = "" if data.aborted_transactions is None else f", {len(data.aborted_transactions):,} aborted"
        show("  returned", f"{len(data.records or b''):,} bytes{aborted}")


def last_stable_offset(client: RawClient) -> int:
    request = fetch_request(TOPIC, 0, topic_id=bytes(16), max_bytes=1, read_committed=True)
    time.sleep(RETRY_S)
    offset: int = client.ask(request, 12).responses[0].partitions[0].last_stable_offset
    return offset


# -- requests --------------------------------------------------------------------------------------


def init(number: int, timeout_ms: int = 60_000) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=f"billing-{number:07}", transaction_timeout_ms=timeout_ms)


def batch(number: int, producer: Any) -> ProduceRequest:
    records = encode_batch(
        [Record(b"key", b"value", timestamp=time.time_ns() // 1_000_000)],
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    data = PartitionProduceData(index=TOPIC.partition, records=records)
    return ProduceRequest(
        transactional_id=f"billing-{number:07}",
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name=TOPIC.topic, partition_data=[data])],
    )


def create_coordinators(client: RawClient) -> None:
    found = FindCoordinatorRequest(key_type=_TRANSACTION, coordinator_keys=["billing"])
    until(lambda: client.ask(found, 4).coordinators[0].error_code == 0)
    until(lambda: client.ask(listing(), 2).error_code == 0)


def create_topic(client: RawClient) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC.topic)], allow_auto_topic_creation=True)
    until(lambda: client.ask(request, 12).topics[0].error_code == 0)


def pipelined(client: RawClient, requests: Iterable[Message], version: int) -> list[Any]:
    """Return the responses to all requests, of which WINDOW are under way at a time."""
    responses, left = [], iter(requests)
    while window := list(islice(left, WINDOW)):
        for request in window:
            client.send(request, version)
        for request in window:
            response = client.receive(request, version)
            assert not getattr(response, "error_code", 0), response
            responses.append(response)
    return responses


def until(is_done: Callable[[], bool]) -> None:
    while not is_done():
        time.sleep(RETRY_S)


@contextmanager
def connected(broker: MeasuredBroker) -> Iterator[RawClient]:
    with RawClient(broker.bootstrap) as client:
        client.socket.settimeout(RESPONSE_S)
        yield client


# -- figures ---------------------------------------------------------------------------------------


@contextmanager
def measured(broker: MeasuredBroker, what: str) -> Iterator[Callable[[], float]]:
    """Print how long the block took, and what it cost the broker."""
    broker.figures()
    began_s = time.monotonic()
    took_s = 0.0
    yield lambda: took_s
    took_s = time.monotonic() - began_s
    figures = broker.figures()
    cpu = f"{figures['process_s']:.2f} s of CPU time, longest hold {figures['hold_s'] * 1000:.1f} ms"
    show(what, f"{took_s:.2f} s, {cpu}")


def show(what: str, figure: str) -> None:
    print(f"  {what:<62} {figure}", flush=True)


if __name__ == "__main__":
    main()
