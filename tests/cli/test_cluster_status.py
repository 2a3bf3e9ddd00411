"""`headrace cluster status` and `elect`: what a cluster says of itself, whole and broken."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.command import Command
from cli.members import wait_until
from support.process import ClusterProcess

BROKER_KEYS = {"id", "host", "port", "rack", "node", "state", "controller", "pid", "leads", "follows"}
PARTITION_KEYS = {"topic", "partition", "leader", "replicas", "in_sync", "min_in_sync", "eligible"}


@pytest.fixture
def headrace(cluster: ClusterProcess) -> Command:
    return Command(cluster.bootstrap)


def test_a_machine_reads_brokers_with_their_processes(cluster: ClusterProcess, headrace: Command) -> None:
    status = headrace.ok("cluster", "status", "--json").json
    assert set(status) == {
        *("cluster_id", "controller", "brokers", "topics", "partitions", "reassignments"),
        *("under_replicated", "under_min_isr", "offline", "leaderless", "not_preferred", "sharing_node"),
    }
    assert all(set(each) == BROKER_KEYS for each in status["brokers"])
    assert [(each["id"], each["host"], each["port"]) for each in status["brokers"]] == [
        (number, "127.0.0.1", cluster.port + number - 1) for number in (1, 2, 3)
    ]
    members = cluster.members
    assert {f"broker-{each['id']}": each["pid"] for each in status["brokers"]} == {
        name: pid for name, pid in members.items() if name.startswith("broker")
    }
    assert [each["id"] for each in status["brokers"] if each["controller"]] == [status["controller"]]
    assert {each["state"] for each in status["brokers"]} == {"up"}


def test_any_broker_can_be_asked(cluster: ClusterProcess) -> None:
    ports = range(cluster.port, cluster.port + 3)
    seen = [
        Command(f"127.0.0.1:{port}").ok("cluster", "status", "--json").json["controller"] for port in ports
    ]
    assert len(set(seen)) == 1


def test_partitions_are_counted_where_they_are_led_and_followed(headrace: Command) -> None:
    before = headrace.ok("cluster", "status", "--json").json
    headrace.ok("topic", "create", "counted", "--partitions", "6", "--replicas", "3")
    after = headrace.ok("cluster", "status", "--json").json
    assert after["topics"] - before["topics"] == 1
    assert after["partitions"] - before["partitions"] == 6
    more = [
        (new["leads"] - old["leads"], new["follows"] - old["follows"])
        for old, new in zip(before["brokers"], after["brokers"], strict=True)
    ]
    assert more == [(2, 4)] * 3
    text = headrace.ok("cluster", "status").text
    assert "every partition has all its replicas in sync" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_broker_that_does_not_answer_is_silent(tmp_path: Path) -> None:
    settings = {"zookeeper.session.timeout.ms": "40000"}  # it counts as alive for so long
    with ClusterProcess(tmp_path, brokers=2, settings=settings) as cluster, _paused(cluster, "broker-2"):
        brokers = Command(f"127.0.0.1:{cluster.port}").ok("cluster", "status", "--json").json["brokers"]
        assert [(each["state"], each["pid"]) for each in brokers] == [
            ("up", cluster.members["broker-1"]),
            ("silent", None),
        ]


def test_a_cluster_says_what_it_lacks_while_a_broker_is_down(
    cluster: ClusterProcess, headrace: Command
) -> None:
    headrace.ok("topic", "create", "single", "--replicas", "1")
    headrace.ok(*("topic", "create", "pair", "--replicas", "2", "--config", "min.insync.replicas=2"))
    headrace.ok("topic", "create", "trio", "--replicas", "3")
    headrace.ok("cluster", "reassign", "--topic", "single", "--to", "3", "--wait")
    headrace.ok("cluster", "reassign", "--topic", "pair", "--to", "3,1", "--wait")
    with _paused(cluster, "broker-3"):
        status = _status_when(headrace, lambda status: _places(status, "under_min_isr") == ["pair-0"])
        assert _places(status, "offline") == ["single-0"]
        assert _places(status, "leaderless") == []
        assert {"pair-0", "single-0", "trio-0"} <= set(_places(status, "under_replicated"))
        assert all(set(each) == PARTITION_KEYS for each in status["under_replicated"])
        assert [each["state"] for each in status["brokers"]] == ["up", "up", "down"]
        assert (status["brokers"][2]["host"], status["brokers"][2]["pid"]) == (None, None)

        lines = headrace.ok("cluster", "status").text.splitlines()
        rows = {line.split()[0]: line for line in reversed(lines) if line}
        assert rows["single-0"].endswith("offline: waits for 3")
        assert rows["pair-0"].endswith("under min ISR: 1 of 2")
        assert rows["trio-0"].endswith("under-replicated: lacks 3")
        assert rows["3"].split()[:6] == ["3", "-", "-", "down", "-", "0"]

        refused = Command(f"127.0.0.1:{cluster.port}")("consume", "single", "--exit-at-end").complaint
        assert "single-0 has no leader (see `headrace cluster status`)" in refused
    _status_when(headrace, lambda status: not status["under_replicated"])


def test_a_leaderless_partition_waits_for_who_has_it_all_or_for_an_unclean_election(
    cluster: ClusterProcess, headrace: Command
) -> None:
    headrace.ok("topic", "create", "torn", "--replicas", "2")
    headrace.ok("cluster", "reassign", "--topic", "torn", "--to", "1,2", "--wait")
    headrace.ok("produce", "torn", "both have it")
    headrace.ok("consume", "torn", "--exit-at-end")  # groups have their topic from now on
    alive = Command(f"127.0.0.1:{cluster.port + 2},127.0.0.1:{cluster.port}")
    with _paused(cluster, "broker-2"):
        _status_when(alive, lambda status: _in_sync(status, "torn") == [1])
        alive.ok("produce", "torn", "one has it")
        with _paused(cluster, "broker-1"):
            os.kill(cluster.members["broker-2"], signal.SIGCONT)
            alive = Command(f"127.0.0.1:{cluster.port + 2},127.0.0.1:{cluster.port + 1}")
            _status_when(alive, lambda status: "torn-0" in _places(status, "leaderless"))
            lines = alive.ok("cluster", "status").text.splitlines()
            assert any(
                line.startswith("torn-0") and line.endswith("leaderless: waits for 1") for line in lines
            )

            asked = alive("cluster", "elect", "--unclean", "--topic", "torn")
            assert asked.complaint.startswith("Confirmation needs a terminal: give --yes")
            preferred = alive("cluster", "elect", "--topic", "torn", "--json")
            assert (preferred.status, preferred.json[0]["leader"]) == (1, None)
            elected = alive.ok("cluster", "elect", "--unclean", "--topic", "torn", "--yes", "--json").json
            assert [(each["leader"], each["refused"]) for each in elected] == [(2, None)]
            assert alive.ok("consume", "torn", "--exit-at-end").text == "both have it\n"
    _status_when(headrace, lambda status: not status["under_replicated"])


def test_the_preferred_replica_leads_again_when_it_is_asked_to(headrace: Command) -> None:
    headrace.ok("topic", "create", "swapped", "--replicas", "2")
    headrace.ok("cluster", "reassign", "--topic", "swapped", "--to", "2,1", "--wait")
    headrace.ok("cluster", "elect", "--topic", "swapped")
    headrace.ok("cluster", "reassign", "--topic", "swapped", "--to", "1,2", "--wait")
    status = headrace.ok("cluster", "status", "--json").json
    assert "swapped-0" in _places(status, "not_preferred")

    elected = headrace.ok("cluster", "elect", "--preferred", "--topic", "swapped", "--partition", "0")
    assert [line.split() for line in elected.text.splitlines()] == [
        ["partition", "leader", "outcome"],
        ["swapped-0", "1", "elected"],
    ]
    again = headrace.ok("cluster", "elect", "--topic", "swapped")
    assert again.text.splitlines()[-1].endswith("leads already")
    assert "swapped-0" not in _places(headrace.ok("cluster", "status", "--json").json, "not_preferred")


def test_a_cluster_that_is_not_there_is_said_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    refused = Command(f"127.0.0.1:{port}")("cluster", "status")
    assert refused.complaint == (
        f"no broker answers at 127.0.0.1:{port}: 127.0.0.1:{port} cannot be reached: connection refused"
    )


@contextmanager
def _paused(cluster: ClusterProcess, name: str) -> Iterator[None]:
    """A process that does nothing while the block runs; it is not dead, so nobody starts it again."""
    pid = cluster.members[name]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _status_when(headrace: Command, holds: Callable[[Any], bool]) -> Any:
    """The status once it is so."""
    seen: list[Any] = []

    def is_so() -> bool:
        seen[:] = [headrace.ok("cluster", "status", "--json").json]
        return holds(seen[0])

    wait_until(is_so, lambda: seen)
    return seen[0]


def _places(status: Any, which: str) -> list[str]:
    return [f"{each['topic']}-{each['partition']}" for each in status[which]]


def _in_sync(status: Any, topic: str) -> list[int] | None:
    """Who is in sync with a topic's only partition, once somebody is not."""
    found: list[list[int]] = [
        each["in_sync"] for each in status["under_replicated"] if each["topic"] == topic
    ]
    return found[0] if found else None
