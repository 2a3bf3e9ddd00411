"""/metrics of a real cluster: the names that dashboards ask for, with numbers that are true."""

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from cluster.waiting import until
from headrace.pipeline.progress import TOPIC, Progress
from support.process import ClusterProcess

RECORDS = 500


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    one = {"default.replication.factor": "1"}  # each replica of a partition has its own log's figures
    with ClusterProcess(tmp_path_factory.mktemp("metrics"), settings=one) as process:
        write_and_read(process.bootstrap)
        report(process.bootstrap)
        yield process


def get(up: ClusterProcess, path: str) -> str:
    with urllib.request.urlopen(up.http + path, timeout=30) as answer:
        return str(answer.read().decode())


def write_and_read(bootstrap: str, topic: str = "orders", group: str = "billing") -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number in range(RECORDS):
        producer.produce(topic, f"{number}")
    producer.flush()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    read, deadline = 0, time.monotonic() + 60
    while read < RECORDS:
        assert time.monotonic() < deadline, f"only {read} of {RECORDS} records came"
        read += len(consumer.consume(RECORDS, 1))
    consumer.commit(asynchronous=False)
    consumer.close()


def report(bootstrap: str) -> None:
    """Write what the queries of a pipeline would, and what none would."""
    now_ms = int(time.time() * 1000)
    events = [
        Progress(pipeline="trucks", query="trucks.speeds", event="batch", at_ms=now_ms, lag=7, rows=30),
        Progress(pipeline="trucks", query="trucks.archive", event="failed", at_ms=now_ms, error="disk full"),
    ]
    producer = Producer({"bootstrap.servers": bootstrap})
    for each in events:
        producer.produce(TOPIC, each.encode(), each.query)
    for strange in (b"not progress", b'{"pipeline": "p\\ud800", "query": "q", "event": "batch", "at_ms": 1}'):
        producer.produce(TOPIC, strange)
    producer.produce(TOPIC, events[0].encode().replace(b'"late_rows":0', b'"late_rows":"x"'))
    assert producer.flush(30) == 0


def scrape(up: ClusterProcess, path: str = "/metrics") -> dict[str, dict[str, float]]:
    """Sums by name: all there is of it, and what has the topic or the group of this test."""
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(get(up, path)):
        for sample in family.samples:
            sums = found.setdefault(sample.name, {})
            for key in {"", sample.labels.get("topic", ""), sample.labels.get("consumergroup", "")}:
                sums[key] = sums.get(key, 0) + sample.value
    return found


def test_what_was_written_and_read_is_counted(up: ClusterProcess) -> None:
    found = scrape(up)
    topic = "kafka_server_brokertopicmetrics_"

    assert found[f"{topic}messagesin_total"]["orders"] == RECORDS
    assert found[f"{topic}bytesin_total"]["orders"] > RECORDS
    assert found[f"{topic}bytesout_total"]["orders"] >= found[f"{topic}bytesin_total"]["orders"]
    assert found["kafka_controller_kafkacontroller_activecontrollercount"][""] == 1
    assert found["kafka_server_replicamanager_underreplicatedpartitions"][""] == 0
    assert found["kafka_log_log_logendoffset"]["orders"] == RECORDS
    assert found["kafka_topic_partition_current_offset"]["orders"] == RECORDS
    assert found["kafka_consumergroup_current_offset"]["billing"] == RECORDS
    assert found["kafka_consumergroup_lag"]["billing"] == 0
    assert found["kafka_brokers"][""] == 3
    assert found["headrace_request_duration_seconds_count"][""] > 0


def test_followers_wait_for_news_also_after_a_topic_was_deleted(up: ClusterProcess) -> None:
    """They wait half a second in each Fetch, and do not repeat requests for the deleted topic."""
    admin = AdminClient({"bootstrap.servers": up.bootstrap})
    made = [NewTopic(name, num_partitions=3, replication_factor=3) for name in ("kept", "deleted")]
    for made_one in admin.create_topics(made).values():
        made_one.result(timeout=30)
    write_and_read(up.bootstrap, "deleted", "readers")
    admin.delete_topics(["deleted"])["deleted"].result(timeout=30)
    until("it is gone", lambda: "deleted" not in scrape(up)["kafka_topic_partition_current_offset"])

    began_s, before = time.monotonic(), fetches(up)
    # There are six fetchers, one for each pair of brokers: each waits at least once for so many answers.
    until("followers go on", lambda: fetches(up) > before + 12)

    assert (fetches(up) - before) / (time.monotonic() - began_s) < 60


def fetches(up: ClusterProcess) -> float:
    """How often anybody has asked for records, replicas included."""
    name = "kafka_network_requestmetrics_requests_total"
    return sum(
        sample.value
        for family in text_string_to_metric_families(get(up, "/metrics"))
        for sample in family.samples
        if sample.name == name and sample.labels["request"].startswith("Fetch")
    )


def test_one_broker_can_be_asked_for(up: ClusterProcess) -> None:
    assert scrape(up, "/metrics?broker=2")["headrace_build_info"][""] == 1
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(up, "/metrics?broker=9")


def test_counters_of_each_broker_and_of_a_topic(up: ClusterProcess) -> None:
    write_and_read(up.bootstrap, "counted", "counters")
    every, topic = (json.loads(get(up, f"/api/v1/counters{query}")) for query in ("", "?topic=counted"))
    assert every["registered"] == topic["registered"] == [1, 2, 3]
    assert every["brokers"].keys() == topic["brokers"].keys() == {"1", "2", "3"}
    for name in ("messages_in", "bytes_in", "bytes_out"):
        of_topic = sum(each[name] for each in topic["brokers"].values())
        assert 0 < of_topic < sum(each[name] for each in every["brokers"].values())
    nothing = json.loads(get(up, "/api/v1/counters?topic=nowhere"))["brokers"]
    assert all(value == 0 for each in nothing.values() for value in each.values())


def test_queries_of_pipelines_are_there(up: ClusterProcess) -> None:
    samples = {
        (sample.name, sample.labels["query"], sample.labels.get("state", "")): sample.value
        for family in text_string_to_metric_families(get(up, "/metrics"))
        for sample in family.samples
        if "query" in sample.labels
    }
    assert samples["headrace_pipeline_query_state", "trucks.speeds", "running"] == 1
    assert samples["headrace_pipeline_query_state", "trucks.archive", "failed"] == 1
    assert samples["headrace_pipeline_query_state", "trucks.archive", "running"] == 0
    assert samples["headrace_pipeline_query_lag", "trucks.speeds", ""] == 7
    assert ("headrace_pipeline_query_lag", "trucks.archive", "") not in samples  # it has had no batch


def test_every_number_of_the_dashboard_is_there(up: ClusterProcess) -> None:
    """What Grafana's panels ask for is what we say; a misspelt name would be an empty panel."""
    dashboard = json.loads((Path(__file__).parents[2] / "docs" / "grafana" / "headrace.json").read_text())
    asked = {
        word
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
        for word in re.findall(r"\b(?:kafka|headrace|process)_\w+", target["expr"])
    }

    assert len(asked) > 15
    assert asked <= scrape(up).keys()
