"""deploy/prometheus/alerts.yml: rules use metrics that /metrics has, and Prometheus accepts the file."""

import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml  # type: ignore[import-untyped]

from headrace import Consumer
from headrace.pipeline.progress import TOPIC, Progress
from headrace.testing import Broker

FILE = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"
PAGE = (Path(__file__).parents[2] / "docs" / "observability.md").read_text("utf-8")
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(FILE.read_text("utf-8"))["groups"] for rule in group["rules"]
]
NAME = re.compile(r"\b(?:kafka|headrace|process)_[a-z_]+\b")
OF_TARGETS = {"job", "instance"}  # labels that Prometheus adds
LABELS = re.compile(r"\{\{ \$labels\.(\w+) \}\}")


@pytest.fixture(scope="module")
def samples() -> dict[str, set[str]]:
    """The names of samples at /metrics, and the labels of each."""
    with Broker() as broker:
        broker.produce("orders", "tea")
        started = Progress(
            pipeline="trucks", query="trucks.speeds", event="started", at_ms=time.time_ns() // 10**6
        )
        broker.produce(TOPIC, started.encode())
        with Consumer(broker.bootstrap, "orders", group="billing") as consumer:
            assert [message.value for message in consumer.read(stop_at_end=True)] == [b"tea"]
        text = httpx2.get(f"{broker.http}/metrics", timeout=30).text
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_uses_metrics_and_labels_that_there_are(
    rule: dict[str, Any], samples: dict[str, set[str]]
) -> None:
    used = NAME.findall(rule["expr"])
    assert used, rule["expr"]
    assert [name for name in used if name not in samples] == []
    labels = set().union(*(samples[name] for name in used))
    selected = {
        name
        for inside in re.findall(r"\{(.*?)\}", rule["expr"])
        for name in re.findall(r"(\w+)!?=~?", inside)
    }
    grouped = {
        name.strip() for inside in re.findall(r"by \((.*?)\)", rule["expr"]) for name in inside.split(",")
    }
    shown = {name for text in rule["annotations"].values() for name in LABELS.findall(text)}
    assert (selected | grouped | shown) - labels - OF_TARGETS == set()
    if grouped:
        assert shown <= grouped


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_says_how_urgent_it_is_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert rule["annotations"].keys() == {"summary", "description"}
    assert f"`{rule['alert']}`" in PAGE


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_does_not_mix_the_brokers_of_several_clusters(rule: dict[str, Any]) -> None:
    for aggregated in re.findall(r"\b(?:sum|min|max|avg|count)\b(.*?)\(", rule["expr"]):
        assert aggregated == " by ", rule["expr"]
    for grouped in re.findall(r"by \((.*?)\)", rule["expr"]):
        assert set(grouped.split(", ")) >= OF_TARGETS, rule["expr"]


def test_prometheus_accepts_the_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("there is no promtool here")
    checked = subprocess.run([promtool, "check", "rules", FILE], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
