"""A gateway before three brokers: any topic, whoever leads it, also while a broker is lost."""

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headrace.gateway.serving import serve_in_thread
from http_support.asking import Asking, v2, wait_until
from support.process import ClusterProcess, UpProcess

CLIENTS = 4
DURABLE = {"min.insync.replicas": "2"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("cluster")) as process:
        yield process


@pytest.fixture(scope="module")
def gateways(cluster: ClusterProcess) -> Iterator[list[Asking]]:
    """Two gateways, which know of one broker each to begin with."""
    first, second, _ = cluster.bootstrap.split(",")
    with serve_in_thread(first) as one, serve_in_thread(second) as other:
        asking = [Asking(one.url), Asking(other.url)]
        yield asking
        for each in asking:
            each.close()


def test_any_gateway_takes_any_topic(gateways: list[Asking]) -> None:
    body = {"name": "anywhere", "partitions": 6, "replicas": 3}
    gateways[0].post("/api/v1/topics", body)
    for gateway in gateways:
        wait_until(lambda: gateway("GET", "/topics/anywhere").ok, "the topic is not known")  # noqa: B023
        leaders = {each["leader"] for each in gateway.get("/topics/anywhere/partitions")}
        assert leaders == {1, 2, 3}
    records = [{"value": index, "partition": index} for index in range(6)]
    for number, gateway in enumerate(gateways):
        said = gateway.post("/topics/anywhere", {"records": records}, kind=v2("json"))
        assert [(each["partition"], each["offset"]) for each in said["offsets"]] == [
            (index, number) for index in range(6)
        ]
    assert sorted(gateways[0].values("anywhere")) == sorted(gateways[1].values("anywhere"))


def test_what_was_acknowledged_is_there_though_a_broker_was_killed(
    cluster: ClusterProcess, gateways: list[Asking]
) -> None:
    topic = "durable"
    body = {"name": topic, "partitions": 3, "replicas": 3, "configs": DURABLE}
    gateways[0].post("/api/v1/topics", body)
    wait_until(lambda: gateways[1]("GET", f"/topics/{topic}").ok, "the topic is not known")
    killed, acknowledged = threading.Event(), [0] * CLIENTS

    def write(client: int) -> list[str]:
        """Records until some were acknowledged after the kill; those that were."""
        asking = Asking(gateways[client % 2].url)
        done: list[str] = []
        after = 0
        while after < 20:
            value = f"{client}-{len(done)}-{after}"
            was_killed = killed.is_set()
            answer = asking("POST", f"/topics/{topic}", {"records": [{"value": value}]}, kind=v2("json"))
            assert answer.status_code == 200, answer.text
            (said,) = answer.json()["offsets"]
            assert said["error"] is None, said  # retried until a new leader took it
            done.append(value)
            acknowledged[client] = len(done)
            after += was_killed
        asking.close()
        return done

    with ThreadPoolExecutor(CLIENTS) as pool:
        writing = [pool.submit(write, client) for client in range(CLIENTS)]
        wait_until(lambda: min(acknowledged) > 5, "nothing is acknowledged")
        os.kill(cluster.members["broker-3"], signal.SIGKILL)
        killed.set()
        expected = [value for each in writing for value in each.result()]
    found = gateways[1].get(f"/api/v1/topics/{topic}/messages?limit=1000&scan=100000")
    assert found["stopped_by"] == "end"
    values = [each["value"].strip('"') for each in found["messages"]]
    assert sorted(values) == sorted(expected)  # each once: the producers are idempotent


def test_a_gateway_outlives_the_broker_it_was_told_of(
    cluster: ClusterProcess, gateways: list[Asking]
) -> None:
    wait_until(lambda: len(gateways[0].get("/brokers")["brokers"]) == 3, "a broker is away")
    gateways[0].post("/api/v1/topics", {"name": "outlived", "partitions": 3, "replicas": 3})
    os.kill(cluster.members["broker-1"], signal.SIGKILL)  # all that this gateway was told
    assert gateways[0].write("outlived", *"abc")
    assert sorted(gateways[0].values("outlived")) == ["a", "b", "c"]
    assert gateways[0].get("/api/v1/topics/outlived")["records"] == 3


def test_a_cluster_that_is_lost_is_noticed_and_found_again(tmp_path: Path) -> None:
    with UpProcess(tmp_path) as up, serve_in_thread(up.bootstrap) as served:
        asking = Asking(served.url)
        asking.topic("lost")
        asking.get("/api/v1/groups")
        up.kill()
        for path in ("/api/v1/topics/t", "/api/v1/groups", "/topics", "/api/v1/cluster", "/readyz"):
            wait_until(lambda: asking("GET", path).status_code == 503, f"{path} does not notice")  # noqa: B023
        up.start()
        wait_until(lambda: asking("GET", "/api/v1/topics").ok, "it is not found again")
        assert asking.write(asking.topic("found"), "x") == [(0, 0)]
        asking.close()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/readyz", None),
        ("GET", "/topics", None),
        ("GET", "/brokers", None),
        ("POST", "/topics/t", {"records": [{"value": 1}]}),
        ("POST", "/consumers/g", {}),
        ("GET", "/v3/clusters", None),
        ("GET", "/v3/clusters/x/topics", None),
        ("GET", "/api/v1/cluster", None),
        ("GET", "/api/v1/topics", None),
        ("GET", "/api/v1/topics/t", None),
        ("GET", "/api/v1/topics/t/messages", None),
        ("GET", "/api/v1/topics/t/tail", None),
        ("POST", "/api/v1/topics/t/messages", {"value": 1}),
        ("GET", "/api/v1/groups", None),
        ("POST", "/api/v1/elect", {}),
    ],
)
def test_a_cluster_that_nobody_answers_for_is_a_sentence(method: str, path: str, body: object) -> None:
    with serve_in_thread("127.0.0.1:1") as served:
        asking = Asking(served.url)
        kind = v2("json") if path == "/topics/t" else "application/json"
        status, code, said = asking.refused(method, path, body, kind=kind)
        asking.close()
    assert (status, code) == (503, 50301)
    assert said.startswith("no broker answers at 127.0.0.1:1")
