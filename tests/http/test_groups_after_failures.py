"""What a gateway knows of groups while brokers go, hang and come back: soon, and never a wrong refusal."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from headrace.client.groups.coordinators import ask_coordinators, commit
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.retry import Backoff
from headrace.protocol.ids import TopicPartition
from headrace.testing import Cluster
from http_support.asking import wait_until

PARTITIONS: Final = 6
GROUPS: Final = sorted(f"g{number}" for number in range(12))
PLACES: Final = [TopicPartition("t", index) for index in range(PARTITIONS)]
SOON_S: Final = 15.0  # a gateway that waits for who does not answer takes 30
UP: Final = "headrace_broker_up"
LAG: Final = "kafka_consumergroup_lag"


class Gateway:
    """Asks, with little patience; what cannot be known now may be 503 and nothing else."""

    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, path: str, body: Any = None, method: str | None = None) -> requests.Response:
        method = method or ("GET" if body is None else "POST")
        answer = requests.request(method, self._url + path, json=body, timeout=SOON_S)
        assert answer.status_code in {200, 204, 503}, answer.text
        return answer

    def names(self) -> list[str]:
        answer = self.ask("/api/v1/groups")
        return [each["name"] for each in answer.json()] if answer.ok else []

    def all_there(self) -> bool:
        return self.names() == GROUPS

    def lag(self, group: str) -> int | None:
        """None if it is not known now, of all partitions."""
        answer = self.ask(f"/api/v1/groups/{group}")
        if not answer.ok or None in [each["lag"] for each in answer.json()["partitions"]]:
            return None
        lag: int = answer.json()["total_lag"]
        return lag

    def coordinator(self, group: str = "g0") -> int:
        broker_id: int = self.ask(f"/api/v1/groups/{group}").json()["coordinator"]["id"]
        return broker_id

    def metrics(self) -> dict[str, dict[str, float]]:
        """By name, then by the values of labels."""
        return {
            family.name: {"/".join(each.labels.values()): each.value for each in family.samples}
            for family in text_string_to_metric_families(self.ask("/metrics").text)
        }


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Groups of every broker, each of which has read the first of two records in each partition."""
    settings = {"offsets.topic.num.partitions": "9"}
    with Cluster(3, settings, topics={"t": {"partitions": PARTITIONS, "replicas": 3}}) as served:
        for place in PLACES:
            served.produce("t", "first", "second", partition=place.partition)
        brokers = Brokers(served.bootstrap)
        for name in GROUPS:
            offsets = dict.fromkeys(PLACES, 1)
            assert not ask_coordinators(brokers, [name], partial(commit, offsets), Backoff(30)).missing
        brokers.close()
        served.wait_until_in_sync()
        yield served


@pytest.fixture
def gateway(cluster: Cluster) -> Iterator[Gateway]:
    found = Gateway(cluster.http)
    wait_until(found.all_there, "a test before has left something broken")
    yield found
    cluster.faults.clear()


@pytest.fixture
def beside(gateway: Gateway) -> tuple[int, str, str]:
    """A broker, a group that it coordinates, and one of another's."""
    of = {name: gateway.coordinator(name) for name in GROUPS}
    broker_id = of["g0"]
    return broker_id, "g0", next(name for name, each in of.items() if each != broker_id)


def test_groups_are_known_when_their_coordinator_has_been_restarted(
    cluster: Cluster, gateway: Gateway
) -> None:
    restarted = gateway.coordinator()
    cluster.stop_broker(restarted)
    wait_until(gateway.all_there, "groups are missing while their coordinator is away")
    wait_until(lambda: gateway.lag("g0") == PARTITIONS, "nobody knows the lag")
    cluster.restart(restarted)
    cluster.wait_until_in_sync()
    assert gateway.ask("/api/v1/elect", {}).ok
    wait_until(gateway.all_there, "groups are missing after an election")
    wait_until(lambda: gateway.lag("g0") == PARTITIONS, "nobody knows the lag")


def test_groups_and_their_lag_are_known_while_a_broker_is_dead(cluster: Cluster, gateway: Gateway) -> None:
    killed = gateway.coordinator()
    cluster.kill(killed)
    try:
        wait_until(gateway.all_there, "groups are missing while their coordinator is dead")
        wait_until(lambda: gateway.lag("g0") == PARTITIONS, "nobody knows the lag")
        found = gateway.metrics()
        assert found[UP] == {str(each): float(each != killed) for each in (1, 2, 3)}
        assert len(found[LAG]) == len(GROUPS) * PARTITIONS
        assert set(found[LAG].values()) == {1.0}
        for path in ("/ui/groups", "/ui/groups/g0", "/ui/topics/t/groups", "/v3/clusters"):
            assert gateway.ask(path).ok, path
        body = {"to": "offset", "offset": 1, "dry_run": False}
        assert gateway.ask("/api/v1/groups/g0/reset", body).json()["executed"]
    finally:
        cluster.restart(killed)
        cluster.wait_until_in_sync()
    wait_until(lambda: gateway.metrics()[UP] == {"1": 1, "2": 1, "3": 1}, "it is not up again")


@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        ("ConsumerGroupDescribe", "NOT_COORDINATOR"),
        ("DescribeGroups", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("OffsetFetch", "NOT_COORDINATOR"),
        ("ListOffsets", "FENCED_LEADER_EPOCH"),
        ("ListOffsets", "NOT_LEADER_OR_FOLLOWER"),
    ],
)
def test_what_has_moved_is_asked_again(cluster: Cluster, gateway: Gateway, api: str, error: str) -> None:
    with cluster.faults.fail(api, error=error, times=2) as fault:
        assert gateway.lag("g0") == PARTITIONS
        assert len(fault.hits) == 2


@pytest.mark.parametrize("api", ["FindCoordinator", "ConsumerGroupDescribe", "OffsetFetch"])
def test_what_cannot_be_known_now_is_503(cluster: Cluster, gateway: Gateway, api: str) -> None:
    error = "COORDINATOR_NOT_AVAILABLE"
    with cluster.faults.fail(api, error=error):
        answer = gateway.ask("/api/v1/groups/g0")
        assert (answer.status_code, answer.json()["error_code"]) == (503, 50301)
        assert answer.json()["message"].startswith("g0: ")
    assert gateway.lag("g0") == PARTITIONS


def test_a_list_names_the_broker_that_is_silent(
    cluster: Cluster, gateway: Gateway, beside: tuple[int, str, str]
) -> None:
    silent, its_own, anothers = beside
    with cluster.faults.delay("ListGroups", seconds=60, broker_id=silent):
        answer = gateway.ask("/api/v1/groups")
        found = gateway.metrics()
    names = {each["name"] for each in answer.json()}
    assert its_own not in names
    assert anothers in names
    assert answer.headers["headrace-missing"].startswith(f"broker {silent}: ")
    assert any(key.startswith(f"{anothers}/") for key in found[LAG])
    wait_until(gateway.all_there, "it is not believed again")
    assert "headrace-missing" not in gateway.ask("/api/v1/groups").headers


def test_a_coordinator_that_hangs_is_503_for_its_groups_only(
    cluster: Cluster, gateway: Gateway, beside: tuple[int, str, str]
) -> None:
    silent, its_own, anothers = beside
    with cluster.faults.delay("OffsetFetch", seconds=60, broker_id=silent):
        answer = gateway.ask(f"/api/v1/groups/{its_own}")
        assert (answer.status_code, answer.json()["error_code"]) == (503, 50301)
        assert f"broker {silent}: " in answer.json()["message"]
        assert gateway.lag(anothers) == PARTITIONS
    wait_until(lambda: gateway.lag(its_own) == PARTITIONS, "it is not believed again")


def test_a_leader_that_hangs_leaves_lags_unknown_and_the_rest_known(
    cluster: Cluster, gateway: Gateway
) -> None:
    silent = cluster.leader_of("t", 0)
    with cluster.faults.delay("ListOffsets", seconds=60, broker_id=silent):
        found = gateway.ask("/api/v1/groups/g0").json()["partitions"]
        reset = gateway.ask("/api/v1/groups/g0/reset", {"to": "earliest"})
    assert [each["committed"] for each in found] == [1] * PARTITIONS
    assert found[0]["lag"] is None
    assert 1 in [each["lag"] for each in found]
    assert reset.status_code == 503
    wait_until(lambda: gateway.lag("g0") == PARTITIONS, "it is not believed again")


def test_a_broker_that_lets_nobody_in_is_named(
    cluster: Cluster, gateway: Gateway, beside: tuple[int, str, str]
) -> None:
    closed, its_own, anothers = beside
    with cluster.faults.refuse_connections(broker_id=closed):
        answer = gateway.ask("/api/v1/groups")
        assert anothers in {each["name"] for each in answer.json()}
        assert answer.headers["headrace-missing"].startswith(f"broker {closed}: ")
        assert gateway.ask(f"/api/v1/groups/{its_own}").status_code == 503
        assert gateway.metrics()[UP][str(closed)] == 0
    wait_until(gateway.all_there, "it is not believed again")
    wait_until(lambda: gateway.lag(its_own) == PARTITIONS, "it is not believed again")


def test_a_process_that_stands_still_hides_its_groups_until_others_have_them() -> None:
    with Cluster(3, process=True, topics={"t": 1}) as cluster:
        gateway, brokers = Gateway(cluster.http), Brokers(cluster.bootstrap)
        for name in GROUPS:
            offsets = {TopicPartition("t", 0): 0}
            assert not ask_coordinators(brokers, [name], partial(commit, offsets), Backoff(30)).missing
        brokers.close()
        wait_until(gateway.all_there, "the groups are not there")
        paused = gateway.coordinator()
        cluster.pause(paused)
        try:
            wait_until(gateway.all_there, "nobody else has become their coordinator")
            assert gateway.coordinator() != paused
            assert gateway.metrics()[UP][str(paused)] == 0
        finally:
            cluster.resume(paused)
        wait_until(lambda: gateway.metrics()[UP][str(paused)] == 1, "it is not up again")
        assert gateway.all_there()
