"""/api/v1: transactions of librdkafka, and the producers of a partition."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from http_support.asking import Asking, wait_until
from support.process import UpProcess


@pytest.fixture
def transactional_id() -> str:
    return f"id-{uuid4().hex[:8]}"


@contextmanager
def ongoing(broker: UpProcess, transactional_id: str, topic: str) -> Iterator[Producer]:
    """A producer with a transaction open in partition 0, which is aborted at the end if it still is."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=0)
    assert producer.flush(30) == 0
    yield producer
    producer.abort_transaction(30)


def producers(gateway: Asking, topic: str) -> list[tuple[int, int | None]]:
    listed = gateway.get(f"/api/v1/topics/{topic}/partitions/0/producers")["producers"]
    return [(producer["producer_id"], producer["start_offset"]) for producer in listed]


# -- list and describe -----------------------------------------------------------------------------


def test_a_transaction_is_listed_and_described_from_its_begin_to_its_end(
    gateway: Asking, broker: UpProcess, transactional_id: str
) -> None:
    topic = gateway.topic(partitions=2)
    path = f"/api/v1/transactions/{transactional_id}"
    with ongoing(broker, transactional_id, topic) as producer:
        found = gateway.get(path)
        assert (found["state"], found["timeout_ms"]) == ("Ongoing", 60_000)
        assert found["topics"] == [{"topic": topic, "partitions": [0]}]
        assert found["duration_ms"] >= 0
        listed = gateway.get(f"/api/v1/transactions?state=Ongoing&pattern={transactional_id}")
        summary = {
            "transactional_id": transactional_id,
            "state": "Ongoing",
            "producer_id": found["producer_id"],
            "coordinator": 1,
        }
        assert listed == {"transactions": [summary], "total": 1, "next": None}
        assert producers(gateway, topic) == [(found["producer_id"], 0)]

        producer.commit_transaction(30)
        wait_until(lambda: gateway.get(path)["state"] == "CompleteCommit", "it is not committed")
        ended = gateway.get(path)
        assert (ended["duration_ms"], ended["topics"]) == (None, [])
        assert producers(gateway, topic) == [(found["producer_id"], None)]
        producer.begin_transaction()


def test_the_list_is_filtered_by_brokers_and_split_into_pages(gateway: Asking, broker: UpProcess) -> None:
    prefix, topic = uuid4().hex[:8], gateway.topic()
    ids = [f"{prefix}-{number}" for number in range(5)]
    for each in ids:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": each})
        producer.init_transactions(30)
    pattern = f"/api/v1/transactions?pattern={prefix}-.*"

    pages, after = [], ""
    while True:
        page = gateway.get(f"{pattern}&limit=2{after}")
        assert page["total"] == len(ids)
        pages.append([each["transactional_id"] for each in page["transactions"]])
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert pages == [ids[:2], ids[2:4], ids[4:]]

    with ongoing(broker, ids[0], topic):
        number = gateway.get(f"/api/v1/transactions/{ids[0]}")["producer_id"]
        assert gateway.get(f"{pattern}&state=Ongoing")["total"] == 1
        assert gateway.get(f"{pattern}&state=Empty&state=Ongoing")["total"] == len(ids)
        assert gateway.get(f"{pattern}&producer_id={number}")["total"] == 1
        assert gateway.get(f"{pattern}&min_duration_ms=0")["total"] == 1
        assert gateway.get(f"{pattern}&min_duration_ms=86400000")["total"] == 0


def test_a_transactional_id_may_have_anything_in_it(gateway: Asking, broker: UpProcess) -> None:
    topic, name = gateway.topic(), "a/b?c %é/producers"
    with ongoing(broker, name, topic):
        assert gateway.get(f"/api/v1/transactions/{quote(name, safe='')}")["transactional_id"] == name


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("transactions/nobody", 404, 40406),
        ("transactions?state=Wrong", 400, 40002),
        ("transactions?pattern=(", 400, 40002),
        ("transactions?pattern=", 422, 422),
        ("transactions?limit=0", 422, 422),
        ("transactions?limit=1001", 422, 422),
        ("transactions?producer_id=-1", 422, 422),
        ("transactions?" + "producer_id=1&" * 101, 422, 422),
        ("topics/nowhere/partitions/0/producers", 404, 40401),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(gateway: Asking, path: str, status: int, code: int) -> None:
    assert gateway.refused("GET", f"/api/v1/{path}")[:2] == (status, code)


def test_a_partition_that_does_not_exist_is_refused(gateway: Asking) -> None:
    topic = gateway.topic()
    found = gateway.refused("GET", f"/api/v1/topics/{topic}/partitions/3/producers")
    assert found == (404, 40402, f"{topic} has no partition 3, only 0 to 0")
