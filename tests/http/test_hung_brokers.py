"""A gateway before brokers that hang: connected and silent, while the cluster goes on without them."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from headrace.gateway.serving import serve_in_thread
from headrace.testing import Cluster
from http_support.asking import Asking, v2, wait_until

pytestmark = pytest.mark.extended

EVERYWHERE = {"records": [{"value": "x", "partition": index} for index in range(3)]}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, process=True) as cluster:
        yield cluster


def test_schemas_and_records_are_taken_although_their_leader_hangs(cluster: Cluster) -> None:
    with serve_in_thread(cluster.bootstrap) as served:
        asking = Asking(served.url)
        asking.post("/subjects/first-value/versions", {"schema": '"string"'})
        _make_topic(asking)
        _write_everywhere(asking, next_offset=1)

        hung = cluster.leader_of("_schemas")
        cluster.pause(hung)
        try:
            assert asking.get("/readyz") == {"status": "ready"}
            assert asking.get("/subjects") == ["first-value"]
            asking.post("/subjects/second-value/versions", {"schema": '"int"'})
            _write_everywhere(asking, next_offset=2)
        finally:
            cluster.resume(hung)
        asking.close()


def test_records_are_the_first_to_notice_that_a_leader_hangs(cluster: Cluster) -> None:
    with serve_in_thread(cluster.bootstrap) as served:
        asking = Asking(served.url)
        _make_topic(asking)
        _write_everywhere(asking, next_offset=1)

        hung = cluster.leader_of("kept")
        cluster.pause(hung)
        try:
            _write_everywhere(asking, next_offset=2)
        finally:
            cluster.resume(hung)
        asking.close()


def test_topics_and_settings_are_told_of_although_the_controller_hangs(cluster: Cluster) -> None:
    with serve_in_thread(cluster.bootstrap) as served:
        asking = Asking(served.url)
        _make_topic(asking)
        (about,) = asking.get("/v3/clusters")["data"]
        hung = int(about["controller"]["related"].rpartition("/")[2])
        cluster.pause(hung)
        try:
            found = asking.get("/topics/kept")
            assert [each["partition"] for each in found["partitions"]] == [0, 1, 2]
            assert found["configs"]["cleanup.policy"] == "delete"
            assert "kept" in asking.get("/topics")
            assert "kept" in [each["name"] for each in asking.get("/api/v1/topics")]
            assert asking.get("/api/v1/topics/kept")["replicas"] == 3
        finally:
            cluster.resume(hung)
        asking.close()


def test_transactions_of_a_hung_coordinator_are_missing_until_another_broker_takes_over(
    cluster: Cluster,
) -> None:
    with serve_in_thread(cluster.bootstrap) as served:
        asking = Asking(served.url)
        _make_topic(asking)
        producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "transactional.id": "hung",
                "transaction.timeout.ms": 900_000,
            }
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("kept", b"x", partition=0)
        assert producer.flush(30) == 0
        hung = asking.get("/api/v1/transactions/hung")["coordinator"]["id"]

        def is_listed() -> bool:
            answer = asking("GET", "/api/v1/transactions?state=Ongoing")
            ids = [each["transactional_id"] for each in answer.json()["transactions"]]
            missing = answer.headers.get("headrace-missing", "")
            assert ids == ["hung"] or missing, "the list lacks a transaction, and does not say so"
            page = asking("GET", "/ui/transactions")
            assert page.ok
            assert "/ui/transactions/hung" in page.text or "Transactions may be missing" in page.text
            return ids == ["hung"] and not missing and "/ui/transactions/hung" in page.text

        assert is_listed()
        cluster.pause(hung)
        try:
            wait_until(is_listed, "no broker has taken over the transaction")
            assert asking.get("/api/v1/transactions/hung")["coordinator"]["id"] != hung
        finally:
            cluster.resume(hung)
        producer.abort_transaction(30)
        asking.close()


def _make_topic(asking: Asking) -> None:
    asking.post("/api/v1/topics", {"name": "kept", "partitions": 3, "replicas": 3})
    wait_until(lambda: asking("GET", "/topics/kept").ok, "the topic is not known")


def _write_everywhere(asking: Asking, next_offset: int) -> None:
    said = asking.post("/topics/kept", EVERYWHERE, kind=v2("json"))["offsets"]
    assert [(each["offset"], each["error"]) for each in said] == [(next_offset - 1, None)] * 3
