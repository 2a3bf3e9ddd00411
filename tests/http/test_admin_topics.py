"""/api/v1: topics, from their making to their end."""

import pytest

from http_support.asking import Asking


def test_a_topic_from_its_first_day_to_its_last(gateway: Asking) -> None:
    body = {"name": "life", "partitions": 2, "replicas": 1, "configs": {"retention.ms": 60000}}
    made = gateway.post("/api/v1/topics", body)
    assert (made["name"], len(made["partitions"]), made["replicas"]) == ("life", 2, 1)
    assert made["configs"] == {"retention.ms": "60000"}
    assert gateway.refused("POST", "/api/v1/topics", body) == (409, 40901, "topic life exists already")

    gateway.write("life", "a", "b", "c", partition=1)
    found = gateway.get("/api/v1/topics/life")
    assert [(each["index"], each["start_offset"], each["next_offset"]) for each in found["partitions"]] == [
        (0, 0, 0),
        (1, 0, 3),
    ]
    assert found["partitions"][1]["leader"] == 1
    assert found["partitions"][1]["in_sync"] == found["partitions"][1]["replicas"] == [1]
    assert found["partitions"][1]["size_bytes"] == found["size_bytes"] > 0
    assert found["records"] == 3

    grown = gateway.post("/api/v1/topics/life/partitions", {"total": 5})
    assert len(grown["partitions"]) == 5
    gateway.delete("/api/v1/topics/life")
    assert gateway.refused("GET", "/api/v1/topics/life") == (404, 40401, "there is no topic life")


def test_the_list_has_every_topic_in_a_line(gateway: Asking) -> None:
    topic = gateway.topic("listed", 3, configs={"cleanup.policy": "compact"})
    gateway.write(topic, *"abcd", key="k")
    lines = {each["name"]: each for each in gateway.get("/api/v1/topics")}
    line = lines[topic]

    assert (line["partitions"], line["replicas"], line["records"]) == (3, 1, 4)
    assert line["size_bytes"] == line["disk_bytes"] > 0
    assert (line["under_replicated"], line["leaderless"], line["internal"]) == (0, 0, False)
    assert line["cleanup_policy"] == "compact"
    assert list(lines) == sorted(lines)


def test_the_list_has_the_next_offset_of_every_partition_on_request(gateway: Asking) -> None:
    topic = gateway.topic("next", 2)
    gateway.write(topic, *"abc", partition=1)
    lines = {each["name"]: each for each in gateway.get("/api/v1/topics?partitions=true")}

    alone = {"leader": 1, "replicas": [1], "in_sync": [1], "start_offset": 0}
    assert lines[topic]["by_partition"] == [
        {"index": 0, "next_offset": 0, **alone},
        {"index": 1, "next_offset": 3, **alone},
    ]
    assert {each["by_partition"] for each in gateway.get("/api/v1/topics")} == {None}


def test_internal_topics_are_left_out_on_request(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.post(
        "/api/v1/groups/internal/reset",
        {"to": "earliest", "topics": {topic: []}, "create": True, "dry_run": False},
    )
    assert "__consumer_offsets" in {each["name"] for each in gateway.get("/api/v1/topics")}
    shown = {each["name"] for each in gateway.get("/api/v1/topics?internal=false")}
    assert topic in shown
    assert "__consumer_offsets" not in shown


def test_settings_of_a_topic_are_changed_together_or_not_at_all(gateway: Asking) -> None:
    topic = gateway.topic(configs={"retention.ms": "1000"})
    gateway.patch(f"/api/v1/topics/{topic}", {"set": {"retention.bytes": 5000}, "unset": ["retention.ms"]})
    assert gateway.get(f"/api/v1/topics/{topic}")["configs"] == {"retention.bytes": "5000"}

    bad = {"set": {"retention.bytes": 1, "retention.ms": "never"}}
    assert gateway.refused("PATCH", f"/api/v1/topics/{topic}", bad)[0] == 400
    assert gateway.get(f"/api/v1/topics/{topic}")["configs"] == {"retention.bytes": "5000"}
    named = {each["name"]: each for each in gateway.get(f"/api/v1/topics/{topic}/configs")}
    assert (named["retention.bytes"]["source"], named["retention.ms"]["source"]) == ("topic", "default")


def test_old_records_are_deleted_up_to_an_offset(gateway: Asking) -> None:
    topic = gateway.topic(partitions=2)
    gateway.write(topic, *"abcde", partition=0)
    gateway.write(topic, *"xyz", partition=1)

    begins = gateway.delete(f"/api/v1/topics/{topic}/records", {"before": {"0": 3, "1": -1}})
    assert begins == [{"partition": 0, "start_offset": 3}, {"partition": 1, "start_offset": 3}]
    assert gateway.values(topic) == ["d", "e"]


def test_records_that_are_not_there_yet_cannot_be_deleted(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, "a")
    path = f"/api/v1/topics/{topic}/records"
    assert gateway.refused("DELETE", path, {"before": {"0": 2}}) == (
        400,
        40002,
        f"{topic}-0: offset 2 is past its end (OFFSET_OUT_OF_RANGE)",
    )
    assert gateway.refused("DELETE", path, {"before": {"0": 1, "7": 0}})[0] == 400
    assert gateway.values(topic) == ["a"]


@pytest.mark.parametrize(
    "body",
    [
        {"name": "a/b"},
        {"name": "x" * 250},
        {"name": ".."},
        {"name": ""},
        {"name": "ok", "partitions": 0},
        {"name": "ok", "partitions": 10**12},
        {"name": "ok", "partitions": "3"},
        {"name": "ok", "replicas": 3},
        {"name": "ok", "configs": {"no.such": "1"}},
        {"name": "ok", "configs": {"retention.ms": ["1"]}},
        {"name": "ok", "surprise": 1},
        {"name": "half \ud800"},
        {"name": "nul\0"},
        [],
        "orders",
        None,
    ],
)
def test_a_topic_that_cannot_be_is_not_made(gateway: Asking, body: object) -> None:
    before = gateway.get("/api/v1/topics")
    status, _, said = gateway.refused("POST", "/api/v1/topics", body)
    assert status in {400, 422}, said
    assert gateway.get("/api/v1/topics") == before


def test_a_nul_in_a_name_is_refused_in_words(gateway: Asking) -> None:
    said = "has a NUL character in it, and no name has one"
    assert gateway.refused("GET", "/api/v1/topics/a%00b") == (422, 422, f"path.name: {said}")
    assert gateway.refused("POST", "/api/v1/topics", {"name": "a\0b"}) == (422, 422, f"body.name: {said}")


def test_a_topic_whose_name_nobody_can_print_is_a_bad_request_and_nothing_that_is_missing(
    gateway: Asking,
) -> None:
    (cluster,) = gateway.get("/v3/clusters")["data"]
    for path, field in (
        ("/api/v1/topics", "name"),
        (f"/v3/clusters/{cluster['cluster_id']}/topics", "topic_name"),
    ):
        status, _, said = gateway.refused("POST", path, {field: "\U000870bd"})
        assert (status, said[:21]) == (400, "there can be no topic")
