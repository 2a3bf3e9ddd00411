"""`headrace doctor` against a real machine, directory and cluster."""

import os
import shutil
import signal
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from cli.command import Command, Result
from headrace.gateway.serving import serve_in_thread
from headrace.system.background import BackgroundThread
from support.process import ClusterProcess, UpProcess

NOWHERE = "127.0.0.1:1"


def test_a_broker_that_is_well_is_found_well(tmp_path: Path) -> None:
    with UpProcess(tmp_path) as up:
        found, pid = _diagnosis(Command(up.bootstrap)("doctor", "--data", str(up.data), "--json")), up.pid
    assert {"controller", "brokers", "partitions", "disk", "copies", "groups", "zookeeper"} <= set(
        _states(found, "cluster at")
    )
    (own,) = [each for each in found["findings"] if each["check"] == "in use"]
    assert f"Process {pid} " in own["says"]
    assert found["problems"] == sum(each["state"] == "problem" for each in found["findings"])
    assert _states(found, "cluster at")["brokers"] == "ok"


def test_a_gateway_of_another_cluster_is_not_taken_for_this_ones(
    headrace: Command, up: UpProcess, tmp_path: Path
) -> None:
    def gateway(url: str) -> str:
        found = _diagnosis(headrace("doctor", "--json", environment={"HEADRACE_REGISTRY": url}))
        (says,) = [each["says"] for each in found["findings"] if each["says"].startswith(url)]
        return str(says)

    with serve_in_thread(up.bootstrap) as own:
        assert gateway(own.url) == f"{own.url} answers."
    with UpProcess(tmp_path) as other, serve_in_thread(other.bootstrap) as foreign:
        assert gateway(foreign.url).startswith(f"{foreign.url} answers, and serves another cluster, ")


def test_a_server_on_port_8080_is_not_taken_for_the_clusters_gateway(headrace: Command) -> None:
    with ExitStack() as stack:
        with suppress(OSError):  # if another program has the port, that one is the stranger
            stranger = stack.enter_context(HTTPServer(("127.0.0.1", 8080), BaseHTTPRequestHandler))
            answering = BackgroundThread(stranger.serve_forever, name="stranger", stop=stranger.shutdown)
            answering.start()
            stack.callback(stranger.shutdown)
        found = _diagnosis(headrace("doctor", "--json"))
        alone = _diagnosis(headrace("doctor", "--json", "--no-cluster"))

    assert [each for each in found["findings"] if "8080" in each["check"] + each["says"]] == []
    assert _states(alone, "machine")["port 8080"] == "ok"  # `headrace up` takes another one


def test_a_person_reads_what_to_do() -> None:
    shown = Command(NOWHERE)("doctor")
    assert shown.status == 1
    assert "problem  brokers" in shown.text
    assert "→ Start the cluster, or check the address." in shown.text
    assert shown.err == ""


def test_a_cluster_that_nobody_named_need_not_be_there(tmp_path: Path) -> None:
    result = Command(NOWHERE)("doctor", "--no-cluster", "--data", str(tmp_path / "new"), "--json")
    found = _diagnosis(result)
    assert not _states(found, "cluster at")
    (owner,) = [each for each in found["findings"] if each["check"] == "owner"]
    assert (owner["state"], owner["says"]) == ("warning", "The directory does not exist.")
    assert not (tmp_path / "new").exists()


def test_a_closed_segment_that_is_gone_is_reported(tmp_path: Path) -> None:
    with UpProcess(tmp_path) as up:
        headrace = Command(up.bootstrap)
        headrace.ok("topic", "create", "orders", "--config", "segment.bytes=2000")
        for _ in range(6):
            headrace.ok("produce", "orders", "x" * 900)
        up.stop()
    orders = up.data / "broker-1" / "orders-0"
    assert headrace("log", "verify", str(orders)).status == 0
    _, second, *_ = sorted(orders.glob("*.log"))
    for path in orders.glob(f"{second.stem}.*"):
        path.unlink()

    verified = headrace("log", "verify", str(orders))
    doctor = headrace("doctor", "--no-cluster", "--data", str(up.data), "--json")

    assert verified.status == 1
    assert f"{second}: the segment is missing" in verified.err
    assert _states(_diagnosis(doctor), str(orders.parent))["damage"] == "problem"


def test_a_stopped_directory_is_looked_through_and_left_as_it_is(tmp_path: Path) -> None:
    with UpProcess(tmp_path) as up:
        headrace = Command(up.bootstrap)
        headrace.ok("produce", "orders", "--partition", "0", "a", "b")
        up.stop()
    logs = up.data / "broker-1"
    look = ("doctor", "--no-cluster", "--data", str(up.data), "--json")
    assert _states(_diagnosis(headrace(*look)), str(logs)) == {"owner": "ok", "stopped": "ok", "files": "ok"}

    before = _content(logs)
    log = logs / "orders-0" / f"{0:020d}.log"
    log.write_bytes(log.read_bytes()[:-1] + b"\xff")
    (logs / f"gone-0.{'0' * 32}-delete").mkdir()
    (logs / "holiday").mkdir()
    result = headrace(*look)
    assert result.status == 1
    states = _states(_diagnosis(result), str(logs))
    assert (states["damage"], states["strangers"], states["left over"]) == ("problem", "problem", "ok")
    after = _content(logs)
    assert after.pop(Path("orders-0") / log.name) != before.pop(Path("orders-0") / log.name)
    assert after == before

    shutil.rmtree(logs / "holiday")
    (logs / ".kafka_cleanshutdown").unlink()
    states = _states(_diagnosis(headrace(*look)), str(logs))
    assert (states["stopped"], states["torn ends"]) == ("warning", "warning")


def test_a_cluster_without_a_broker_is_a_problem_and_thin_copies_a_warning(cluster: ClusterProcess) -> None:
    headrace = Command(cluster.bootstrap)
    headrace.ok("topic", "create", "thin", "--replicas", "1")
    headrace.ok("topic", "create", "weak", "--replicas", "3")
    headrace.ok("produce", "weak", "x")
    headrace.ok("consume", "weak", "--group", "left", "--exit-at-end")
    headrace.ok("produce", "weak", "y")
    found = _diagnosis(headrace("doctor", "--watch", "0", "--json"))
    states = _states(found, "cluster at")
    assert (states["views"], states["brokers"]) == ("ok", "ok")
    assert (states["copies"], states["min.insync.replicas"]) == ("warning", "warning")
    assert states["abandoned"] == "warning"

    pid = cluster.members["broker-3"]
    os.kill(pid, signal.SIGSTOP)
    try:
        hung = _diagnosis(headrace("doctor", "--watch", "0", "--json"))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert _states(hung, "cluster at")["brokers"] == "problem"


def _diagnosis(result: Result) -> Any:
    assert result.err == "", result
    found = result.json
    assert result.status == (1 if found["problems"] else 0), result
    return found


def _states(found: Any, area: str) -> dict[str, str]:
    """What was found of an area, by what was checked."""
    return {each["check"]: each["state"] for each in found["findings"] if each["area"].startswith(area)}


def _content(directory: Path) -> dict[Path, bytes]:
    return {each.relative_to(directory): each.read_bytes() for each in directory.rglob("*") if each.is_file()}


def test_the_consoles_address_is_not_taken_for_a_brokers() -> None:
    with serve_in_thread("127.0.0.1:1") as served:
        address = served.url.removeprefix("http://")
        refused = Command(address)("cluster", "status")
    assert refused.complaint.startswith(f"{address} speaks HTTP, not Kafka's protocol: give the address of")
