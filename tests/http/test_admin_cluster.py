"""/api/v1: the cluster, its brokers and their settings."""

from http_support.asking import Asking
from support.process import UpProcess


def test_a_healthy_cluster_says_so(gateway: Asking, broker: UpProcess) -> None:
    gateway.topic(partitions=3)
    found = gateway.get("/api/v1/cluster")

    assert found["healthy"] is True
    assert found["controller"] == 1
    (only,) = found["brokers"]
    assert (only["id"], only["state"], only["controller"]) == (1, "up", True)
    assert f"{only['host']}:{only['port']}" == broker.bootstrap
    assert only["leads"] == found["partitions"]["total"] >= 3
    assert {name: found["partitions"][name] for name in ("offline", "leaderless", "under_replicated")} == {
        "offline": 0,
        "leaderless": 0,
        "under_replicated": 0,
    }
    assert not any(found["needing_care"].values())


def test_a_broker_says_what_is_on_its_disk(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, "x" * 1000)
    found = gateway.get("/api/v1/brokers/1")

    (directory,) = found["log_dirs"]
    sizes = {(each["topic"], each["partition"]): each["size_bytes"] for each in directory["replicas"]}
    assert sizes[topic, 0] > 1000
    assert found["size_bytes"] == sum(sizes.values()) == directory["size_bytes"]
    assert directory["total_bytes"] > directory["usable_bytes"] > 0


def test_a_broker_that_is_not_there(gateway: Asking) -> None:
    for path in ("/api/v1/brokers/7", "/api/v1/brokers/7/configs"):
        assert gateway.refused("GET", path) == (404, 40404, "there is no broker 7, only 1")
    assert gateway.refused("PATCH", "/api/v1/brokers/7/configs", {"set": {"log.retention.ms": 1}})[0] == 404


def test_settings_of_a_broker_are_changed_while_it_runs(gateway: Asking) -> None:
    def retention() -> tuple[str, str]:
        found = {each["name"]: each for each in gateway.get("/api/v1/brokers/1/configs")}
        return found["log.retention.ms"]["value"], found["log.retention.ms"]["source"]

    before = retention()
    gateway.patch("/api/v1/brokers/1/configs", {"set": {"log.retention.ms": 123456789}})
    assert retention() == ("123456789", "broker")
    gateway.patch("/api/v1/brokers/1/configs", {"unset": ["log.retention.ms"]})
    assert retention() == before


def test_a_setting_that_cannot_be_is_refused_and_nothing_changes(gateway: Asking) -> None:
    before = gateway.get("/api/v1/brokers/1/configs")
    for body in (
        {"set": {"log.retention.ms": "soon"}},
        {"set": {"log.retention.ms": "5000", "no.such.setting": "1"}},
        {"set": {"broker.id": "9"}},
        {"set": {"log.retention.ms": "1"}, "unset": ["log.retention.ms"]},
        {},
    ):
        status, _, said = gateway.refused("PATCH", "/api/v1/brokers/1/configs", body)
        assert (status, len(said) > 10) == (400, True), said
    assert gateway.get("/api/v1/brokers/1/configs") == before


def test_an_election_that_is_not_needed_says_so(gateway: Asking) -> None:
    topic = gateway.topic(partitions=2)
    found = gateway.post("/api/v1/elect", {"topic": topic})

    assert [(each["partition"], each["leader"], each["needed"]) for each in found] == [
        (0, 1, False),
        (1, 1, False),
    ]


def test_moves_are_checked_before_any_begins(gateway: Asking) -> None:
    topic = gateway.topic()
    for move, status in (
        ({"topic": topic, "partition": 0, "replicas": [9]}, 400),
        ({"topic": topic, "partition": 5, "replicas": [1]}, 400),
        ({"topic": "nowhere", "partition": 0, "replicas": [1]}, 404),
        ({"topic": topic, "partition": 0, "replicas": [1, 1]}, 400),
        ({"topic": topic, "partition": 0, "replicas": []}, 422),
    ):
        assert gateway.refused("POST", "/api/v1/reassignments", {"moves": [move]})[0] == status
    assert gateway.get("/api/v1/reassignments") == []
    move = {"topic": topic, "partition": 0, "replicas": [1]}
    assert gateway.post("/api/v1/reassignments", {"moves": [move], "dry_run": True}) == [
        {"topic": topic, "partition": 0, "before": [1], "replicas": [1]}
    ]
