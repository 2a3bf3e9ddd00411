"""docs/observability.md names what /metrics has: all of it, and nothing else."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from headrace import Consumer
from headrace.pipeline.progress import TOPIC, Progress
from headrace.testing import Broker

PAGE = (Path(__file__).parents[2] / "docs" / "observability.md").read_text("utf-8")
NAME = re.compile(r"\b(?:kafka|headrace|process)_[a-z_]+\b")
NO_METRICS = {"kafka_exporter", "headrace_damaged_offsets"}  # the latter only while there is damage


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.produce("orders", "tea")
        batch = Progress(
            pipeline="trucks",
            query="trucks.speeds",
            event="batch",
            at_ms=time.time_ns() // 10**6,
            broken={"orders": {"has an id": 1}},
        )
        broker.produce(TOPIC, batch.encode())
        with Consumer(broker.bootstrap, "orders", group="billing") as consumer:
            assert [message.value for message in consumer.read(stop_at_end=True)] == [b"tea"]
        yield broker


@pytest.fixture(scope="module")
def families(broker: Broker) -> set[str]:
    text = httpx2.get(f"{broker.http}/metrics", timeout=30).text
    return set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))


def test_every_metric_is_on_the_page(families: set[str]) -> None:
    named = {*NAME.findall(PAGE)}
    short = {*re.findall(r"`…(_[a-z_]+)`", PAGE)}
    missing = {
        name for name in families - named if not any(name.endswith(each) for each in short)
    }  # `…_leadercount` beside `kafka_server_replicamanager_partitioncount`

    # What is said once for produce is said of fetch with it.
    assert {name for name in missing if "fetchrequests" not in name} == set()


def test_every_metric_of_the_page_is_there(families: set[str]) -> None:
    assert {*NAME.findall(PAGE)} - families - NO_METRICS == set()


@pytest.mark.parametrize(("path", "says"), re.findall(r"^\| `(/\w+)` \| `([^`]+)`", PAGE, re.MULTILINE))
def test_health_says_what_the_page_says(broker: Broker, path: str, says: str) -> None:
    assert httpx2.get(f"{broker.http}{path}", timeout=30).text == says
