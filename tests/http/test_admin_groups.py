"""/api/v1: consumer groups, looked at and moved."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer

from headrace.client.wire.brokers import Brokers
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from headrace.protocol.schema.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from http_support.asking import Asking, wait_until
from support.process import UpProcess


@contextmanager
def member(broker: UpProcess, group: str, topic: str, records: int) -> Iterator[Consumer]:
    """A member that has read and committed so many records."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "client.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe([topic])
        left = records
        while left:
            message = consumer.poll(20)
            assert message is not None
            assert message.error() is None
            left -= 1
        consumer.commit(asynchronous=False)
        yield consumer
    finally:
        consumer.close()


def reset(gateway: Asking, group: str, **body: Any) -> list[tuple[int, int | None, int]]:
    answer = gateway.post(f"/api/v1/groups/{group}/reset", body)
    assert answer["executed"] is not body.get("dry_run", True)
    return [(each["partition"], each["old"], each["new"]) for each in answer["partitions"]]


def test_a_group_shows_its_members_and_how_far_they_are(gateway: Asking, broker: UpProcess) -> None:
    topic = gateway.topic(partitions=2)
    gateway.write(topic, *"abcde", partition=0)
    with member(broker, "watched", topic, records=5):
        gateway.write(topic, *"xyz", partition=0)
        found = gateway.get("/api/v1/groups/watched")
        listed = {each["name"]: each for each in gateway.get("/api/v1/groups?state=Stable")}
        path = "/api/v1/groups/watched/{}"
        busy = gateway.refused("POST", path.format("reset"), {"to": "earliest", "dry_run": False})
        assert busy[:2] == (409, 40902)
        assert gateway.refused("DELETE", "/api/v1/groups/watched")[:2] == (409, 40902)

    assert (found["state"], found["type"], found["total_lag"]) == ("Stable", "classic", 3)
    (only,) = found["members"]
    assert (only["client_id"], only["assignment"]) == ("reader", [{"topic": topic, "partitions": [0, 1]}])
    assert [(each["committed"], each["log_end"], each["lag"]) for each in found["partitions"]] == [
        (5, 8, 3),
        (None, 0, None),
    ]
    assert listed["watched"]["members"] == 1
    gateway.delete("/api/v1/groups/watched")
    assert gateway.refused("GET", "/api/v1/groups/watched") == (404, 40403, "there is no group watched")


def test_a_reset_changes_nothing_unless_told_to(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, *"abcdef", timestamp_ms=1_700_000_000_000)
    gateway.write(topic, "g", timestamp_ms=1_790_000_000_000)
    everything: dict[str, Any] = {"topics": {topic: []}}

    assert reset(gateway, "moved", to="offset", offset=2, create=True, dry_run=False, **everything) == [
        (0, None, 2)
    ]
    assert reset(gateway, "moved", to="latest") == [(0, 2, 7)]
    assert reset(gateway, "moved", to="earliest", **everything) == [(0, 2, 0)]
    assert reset(gateway, "moved", to="shift", shift=3) == [(0, 2, 5)]
    assert reset(gateway, "moved", to="time", time_ms=1_750_000_000_000) == [(0, 2, 6)]
    assert reset(gateway, "moved", to="offset", offset=99) == [(0, 2, 7)]
    assert reset(gateway, "moved", to="offsets", offsets={topic: {"0": 4}}) == [(0, 2, 4)]
    assert reset(gateway, "moved", to="current", dry_run=False) == [(0, 2, 2)]
    assert gateway.get("/api/v1/groups/moved")["total_lag"] == 5


def test_committed_offsets_are_forgotten_one_by_one(gateway: Asking) -> None:
    topic = gateway.topic(partitions=3)
    reset(gateway, "forgetful", to="earliest", topics={topic: []}, create=True, dry_run=False)
    path = "/api/v1/groups/forgetful/offsets"

    assert gateway.refused("DELETE", path, {"topics": {topic: [7]}})[:2] == (400, 40002)
    gateway.delete(path, {"topics": {topic: [1]}})
    left = gateway.get("/api/v1/groups/forgetful")["partitions"]
    assert [each["partition"] for each in left] == [0, 2]
    gateway.delete(path, {"topics": {topic: []}})
    assert gateway.get("/api/v1/groups/forgetful")["partitions"] == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"to": "yesterday"}, 422),
        ({"to": "offset"}, 400),
        ({"to": "earliest", "offset": 3}, 400),
        ({"to": "offset", "offset": -1}, 422),
        ({"to": "offset", "offset": 2**63}, 422),
        ({"to": "offset", "offset": "3"}, 422),
        ({"to": "shift", "shift": 2**70}, 422),
        ({"to": "offsets", "offsets": {"t": {"x": 1}}}, 422),
        ({"to": "offsets", "offsets": {"t": {"0": 1}}, "topics": {"t": []}}, 400),
        ({"to": "earliest", "topics": {"nowhere": []}}, 404),
        ({"to": "earliest", "topics": {"nowhere": [0]}, "create": True}, 404),
        ({"to": "earliest"}, 404),
    ],
)
def test_a_reset_that_makes_no_sense_is_refused(gateway: Asking, body: dict[str, Any], status: int) -> None:
    found = gateway.refused("POST", "/api/v1/groups/never-made/reset", {**body, "dry_run": False})
    assert found[0] == status, found
    assert gateway.refused("GET", "/api/v1/groups/never-made")[0] == 404


def test_a_groups_name_may_have_anything_in_it(gateway: Asking, broker: UpProcess) -> None:
    topic = gateway.topic()
    gateway.write(topic, "a")
    name = "a/reset?b %é"
    with member(broker, name, topic, records=1):
        assert gateway.get(f"/api/v1/groups/{quote(name, safe='')}")["name"] == name
    assert reset(gateway, quote(name, safe=""), to="earliest", dry_run=False) == [(0, 1, 0)]
    gateway.delete(f"/api/v1/groups/{quote(name, safe='')}")
    assert name not in [each["name"] for each in gateway.get("/api/v1/groups")]


def test_a_group_without_a_name_does_not_hide_the_others(gateway: Asking, broker: UpProcess) -> None:
    topic = gateway.topic()
    gateway.write(topic, "a")
    with member(broker, "named", topic, records=1), Brokers(broker.bootstrap) as brokers:
        (found,) = brokers.any(MetadataRequest(topics=[MetadataRequestTopic(name=topic)])).topics
        commit = OffsetCommitRequest(
            group_id="",  # which Kafka takes
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=found.topic_id,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=0, committed_offset=1, committed_metadata=""
                        )
                    ],
                )
            ],
        )

        def committed() -> bool:
            answer: OffsetCommitResponse = brokers.any(commit)
            return not answer.topics[0].partitions[0].error_code

        wait_until(committed, "the coordinator is not there")
    names = {each["name"] for each in gateway.get("/api/v1/groups")}
    assert "named" in names
    assert "" not in names
    for path in ("/ui/groups", "/metrics"):
        answer = gateway("GET", path)
        assert (answer.status_code, "named" in answer.text) == (200, True)
