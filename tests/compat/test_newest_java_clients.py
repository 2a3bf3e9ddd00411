"""Kafka's clients of the version whose message definitions our schema has."""

import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest

from compat.kafka_tools.assignors import can_compile
from compat.kafka_tools.java import SHORT_LIVED, KafkaJava
from headrace.protocol.schema.index import APIS, LATEST_VERSION_UNSTABLE, ApiKey
from headrace.testing.cluster import Cluster
from wire.requests import fresh_name

PROGRAM: Final = Path(__file__).parent / "kafka_tools" / "NewestClients.java"
LOGGED: Final = "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients.NetworkClient=debug"
SENT: Final = re.compile(r"Sending (\w+) request with header RequestHeader\(apiKey=\w+, apiVersion=(\d+)")
TIMEOUT_S: Final = 120


def test_they_use_the_newest_versions_and_get_what_they_expect(kafka_clients: KafkaJava) -> None:
    if not can_compile(kafka_clients):
        pytest.skip(f"{kafka_clients.java} has no compiler: install a JDK (17 or newer).")
    options = [*SHORT_LIVED, LOGGED, "-cp", f"{kafka_clients.jars}/*"]
    with Cluster(brokers=3) as cluster:
        ran = subprocess.run(
            [str(kafka_clients.java), *options, str(PROGRAM), cluster.bootstrap, fresh_name("newest")],
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        assert ran.returncode == 0, ran.stderr[-5000:]
    facts = [line.split(" ", 1) for line in ran.stdout.splitlines()]
    assert [name for name, _ in facts] == [
        "finalized", "unchanged", "downgraded", "quorum", "committed", "deleted", "deleted",
    ]  # fmt: skip
    finalized, unchanged, downgraded, quorum, committed, not_deleted, deleted = (fact for _, fact in facts)
    assert finalized == "{group.version=1, transaction.version=2}"
    assert (unchanged, committed, deleted) == ("done", "1", "done")
    assert downgraded.startswith("InvalidUpdateVersionException: group.version cannot be set to 0")
    assert re.fullmatch(r"[123] true \[1, 2, 3\] \[1, 1, 1\]", quorum)
    assert not_deleted.startswith("GroupNotEmptyException")

    versions: dict[str, set[int]] = defaultdict(set)
    for name, version in SENT.findall(ran.stderr):
        versions[name].add(int(version))
    used = {"API_VERSIONS", "DELETE_GROUPS", "DESCRIBE_QUORUM", "TXN_OFFSET_COMMIT", "UPDATE_FEATURES"}
    assert used <= versions.keys()
    for name, sent in versions.items():
        key = ApiKey[name]
        assert max(sent) == APIS[key].versions[-1] - (key in LATEST_VERSION_UNSTABLE), name
    assert re.search(r"API_VERSIONS.*clusterId='\S{22}', nodeId=[123]", ran.stderr), "none expects a broker"
    assert "REBOOTSTRAP_REQUIRED" not in ran.stderr
