"""REST proxy, v3: resources in their envelopes, each at the address that it says."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer

from http_support.asking import Asking, wait_until
from support.process import UpProcess


@pytest.fixture(scope="module")
def cluster(gateway: Asking) -> str:
    """The cluster's address."""
    (only,) = gateway.get("/v3/clusters")["data"]
    assert only["metadata"]["self"] == f"{gateway.url}/v3/clusters/{only['cluster_id']}"
    return str(only["metadata"]["self"])


def addresses(resource: Any) -> Iterator[str]:
    """Every address in an answer."""
    if isinstance(resource, dict):
        for name, value in resource.items():
            if name in {"self", "related"}:
                yield value
            yield from addresses(value)
    elif isinstance(resource, list):
        for each in resource:
            yield from addresses(each)


def test_every_address_in_an_answer_leads_to_what_has_it(gateway: Asking, cluster: str) -> None:
    topic = gateway.topic(partitions=2)
    todo, seen = {cluster, f"{cluster}/topics/{topic}"}, set[str]()
    nowhere = "/reassignment"  # while nothing moves
    while todo:
        address = todo.pop()
        seen.add(address)
        found = gateway.get(address)
        assert found["kind"].startswith("Kafka")
        assert found["metadata"]["self"] == address
        inside = {each for each in addresses(found) if topic in each or "/topics" not in each}
        todo |= {each for each in inside - seen if not each.endswith(nowhere) and "consumer-g" not in each}
    assert f"{cluster}/topics/{topic}/partitions/1/replicas/1" in seen
    assert f"{cluster}/topics/{topic}/configs/retention.ms" in seen
    assert f"{cluster}/brokers/1/partition-replicas" in seen


def test_a_cluster_in_the_list_of_clusters_is_what_it_is_at_its_own_address(
    gateway: Asking, cluster: str
) -> None:
    (only,) = gateway.get("/v3/clusters")["data"]
    assert only == gateway.get(cluster)
    assert only["controller"]["related"] == f"{cluster}/brokers/1"


def test_a_slash_at_the_end_says_nothing(gateway: Asking, cluster: str) -> None:
    for path in ("/v3/clusters", cluster, f"{cluster}/topics", "/brokers"):
        assert gateway.get(f"{path}/") == gateway.get(path)


def test_a_topic_from_its_first_day_to_its_last(gateway: Asking, cluster: str) -> None:
    body = {
        "topic_name": "v3-life",
        "partitions_count": 2,
        "replication_factor": 1,
        "configs": [{"name": "retention.ms", "value": "1000"}],
    }
    made = gateway.post(f"{cluster}/topics", body)
    at = f"{cluster}/topics/v3-life"
    assert made["metadata"]["self"] == at
    assert (made["kind"], made["partitions_count"], made["replication_factor"]) == ("KafkaTopic", 2, 1)
    assert gateway.refused("POST", f"{cluster}/topics", body) == (400, 40002, "topic v3-life exists already")
    assert made in gateway.get(f"{cluster}/topics")["data"]
    assert gateway.patch(at, {"partitions_count": 3})["partitions_count"] == 3
    gateway.delete(at)
    assert gateway.refused("GET", at) == (404, 40403, "there is no topic v3-life")


def test_a_topic_may_be_checked_before_it_is_made(gateway: Asking, cluster: str) -> None:
    body = {"topic_name": "v3-draft", "partitions_count": 4, "validate_only": True}
    answer = gateway("POST", f"{cluster}/topics", body)
    assert answer.status_code == 200
    assert (answer.json()["partitions_count"], answer.json()["replication_factor"]) == (4, 1)
    assert gateway.refused("GET", f"{cluster}/topics/v3-draft")[0] == 404

    assert gateway.refused("POST", f"{cluster}/topics", body | {"replication_factor": 9})[0] == 400
    taken = gateway.topic()
    refused = gateway.refused("POST", f"{cluster}/topics", body | {"topic_name": taken})
    assert refused == (400, 40002, f"topic {taken} exists already")


def test_settings_of_all_brokers(gateway: Asking, cluster: str) -> None:
    at = f"{cluster}/broker-configs"
    name = "log.retention.bytes"
    gateway("PUT", f"{at}/{name}", {"value": "123456789"})
    wait_until(lambda: gateway("GET", f"{at}/{name}").ok, "it is not set")
    found = gateway.get(f"{at}/{name}")
    assert (found["value"], found["config_type"]) == ("123456789", "BROKER")
    assert found["metadata"]["resource_name"].endswith(f"/broker-config={name}")
    assert found in gateway.get(at)["data"]
    assert gateway.get(f"{cluster}/brokers/1/configs/{name}")["source"] == "DYNAMIC_DEFAULT_BROKER_CONFIG"

    assert gateway.refused("POST", f"{at}:alter", {"data": [{"name": name, "value": "many"}]})[0] == 400
    gateway.post(f"{at}:alter", {"data": [{"name": name, "operation": "DELETE"}]})
    wait_until(lambda: gateway("GET", f"{at}/{name}").status_code == 404, "it is not taken back")


def test_settings_one_by_one_and_together(gateway: Asking, cluster: str) -> None:
    at = f"{cluster}/topics/{gateway.topic()}/configs"

    def setting(name: str) -> tuple[str, str, bool]:
        found = gateway.get(f"{at}/{name}")
        return found["value"], found["source"], found["is_default"]

    default = setting("retention.ms")
    assert default[1:] == ("DEFAULT_CONFIG", True)
    gateway("PUT", f"{at}/retention.ms", {"value": "5000"})
    assert setting("retention.ms") == ("5000", "DYNAMIC_TOPIC_CONFIG", False)
    changes = [{"name": "retention.ms", "operation": "DELETE"}, {"name": "retention.bytes", "value": "7000"}]
    gateway.post(f"{at}:alter", {"data": changes})
    assert setting("retention.ms") == default
    gateway.delete(f"{at}/retention.bytes")
    assert setting("retention.bytes")[2] is True

    bad = [{"name": "retention.ms", "value": "1"}, {"name": "retention.bytes", "value": "many"}]
    assert gateway.refused("POST", f"{at}:alter", {"data": bad})[0] == 400
    assert gateway.refused("POST", f"{at}:alter", {"data": [bad[0], bad[0]]})[0] == 400
    assert gateway.refused("PUT", f"{at}/retention.ms", {})[0] == 400
    assert gateway.refused("GET", f"{at}/no.such")[0] == 404
    assert setting("retention.ms") == default


def test_groups_members_and_lags(gateway: Asking, cluster: str, broker: UpProcess) -> None:
    topic = gateway.topic(partitions=2)
    gateway.write(topic, *"abc", partition=0)
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "v3", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    wait_until(lambda: consumer.poll(0.1), "no record has come")
    consumer.commit(asynchronous=False)
    gateway.write(topic, *"de", partition=0)
    at = f"{cluster}/consumer-groups/v3"
    group = gateway.get(at)
    (member,) = gateway.get(group["consumers"]["related"])["data"]
    assigned = gateway.get(member["assignments"]["related"])["data"]
    (lag,) = [each for each in gateway.get(f"{at}/lags")["data"] if each["partition_id"] == 0]
    summary = gateway.get(group["lag_summary"]["related"])
    consumer.close()
    wait_until(lambda: gateway.get(f"{at}/consumers")["data"] == [], "its member has not left")
    assert "max_lag_consumer" not in gateway.get(f"{at}/lag-summary")

    assert summary["max_lag_consumer"]["related"] == member["metadata"]["self"]
    assert (group["state"], group["type"], group["is_simple"]) == ("STABLE", "CLASSIC", False)
    assert [each["partition_id"] for each in assigned] == [0, 1]
    assert lag["log_end_offset"] - lag["current_offset"] == lag["lag"] == summary["total_lag"] > 0
    assert lag["consumer_id"] == member["consumer_id"] == summary["max_lag_consumer_id"]
    assert gateway.get(lag["metadata"]["self"])["topic_name"] == topic
    assert gateway.get(f"{cluster}/consumer-groups")["kind"] == "KafkaConsumerGroupList"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("x", 404),
        ("/brokers/7", 404),
        ("/brokers/x", 422),
        ("/brokers/7/configs", 404),
        ("/brokers/7/partition-replicas", 404),
        ("/topics/nowhere", 404),
        ("/topics/nowhere/configs", 404),
        ("/topics/nowhere/partitions", 404),
        ("/topics/nowhere/partitions/0/replicas", 404),
        ("/topics/nowhere/partitions/-/reassignment", 404),
        ("/consumer-groups/nowhere", 404),
        ("/consumer-groups/nowhere/lags", 404),
        ("/consumer-groups/nowhere/consumers/x/assignments", 404),
    ],
)
def test_what_is_not_there(gateway: Asking, cluster: str, path: str, status: int) -> None:
    assert gateway.refused("GET", cluster + path)[0] == status
