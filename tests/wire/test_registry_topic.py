"""Schemas in their topic: written by several gateways at once, and there whatever happens to any of them."""

import json
import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from headrace.client.admin.admin import Admin
from headrace.gateway.configuration import GatewaySettings
from headrace.gateway.reach import Reach
from headrace.gateway.registry.registry import SchemaRegistry
from headrace.gateway.serving import serve_in_thread
from headrace.registry.formats import Schema, SchemaType
from headrace.registry.refusals import NoSuchSchema
from headrace.registry.registration import SubmittedSchema
from headrace.testing import Broker, Cluster
from wire.registry_calls import RegistryCalls

TOPIC = "_schemas"
COMPARES = "headrace.append.expected.offset"


def schema(number: int) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": number + 1}


@contextmanager
def gateway(bootstrap: str) -> Iterator[RegistryCalls]:
    with serve_in_thread(bootstrap) as served:
        registry = RegistryCalls(served.url)
        # FastAPI builds its routes when they are first looked at, and turns warnings off for that, in a way
        # that is not for two threads at a time: so the gateways of a test do it one after the other.
        assert registry.get("/no-such-path").status == 404
        yield registry


@contextmanager
def gateway_process(bootstrap: str) -> Iterator[tuple[RegistryCalls, "subprocess.Popen[str]"]]:
    command = [
        str(Path(sys.executable).parent / "headrace"),
        "gateway",
        "--bootstrap",
        bootstrap,
        "--port",
        "0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            yield RegistryCalls(ready.partition("http=")[2].strip()), process
        finally:
            process.kill()


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    """A broker for tests that leave it as it was."""
    with Broker() as broker:
        yield broker


def wait_until(condition: Callable[[], bool], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def settings_of(broker: Broker | Cluster) -> dict[str, str | None]:
    return {each.name: each.value for each in Admin(broker.bootstrap).topic_configs(TOPIC)}


# -- the topic -------------------------------------------------------------------------------------


def test_the_topic_is_made_by_the_first_who_writes_and_by_no_reader(broker: Broker) -> None:
    registry = RegistryCalls(broker.http)
    assert registry.get("/subjects").body == []
    assert registry.get("/schemas/ids/1").code == 40403
    assert TOPIC not in [each.name for each in broker.admin.list_topics()]

    assert registry.register("s", schema(0)).body["id"] == 1
    settings = settings_of(broker)
    assert (settings["cleanup.policy"], settings[COMPARES]) == ("compact", "true")
    topic = broker.admin.describe_topic(TOPIC)
    assert (len(topic.partitions), topic.replicas) == (1, 1)


def test_gateways_that_make_the_topic_at_once_do_not_harm_each_other(broker: Broker) -> None:
    with gateway(broker.bootstrap) as one, gateway(broker.bootstrap) as two, ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda n: (one, two)[n % 2].register(f"s{n}", schema(n)), range(4)))

    assert sorted(each.body["id"] for each in made) == [1, 2, 3, 4]


def test_two_gateways_that_write_at_once_give_out_every_id_and_version_once(broker: Broker) -> None:
    with gateway(broker.bootstrap) as one, gateway(broker.bootstrap) as two, ThreadPoolExecutor(8) as pool:
        one.put("/config", {"compatibility": "NONE"})
        made = list(pool.map(lambda n: (one, two)[n % 2].register("s", schema(n)), range(100)))

        assert {each.status for each in made} == {200}
        assert sorted(each.body["id"] for each in made) == list(range(1, 101))
        assert sorted(each.body["version"] for each in made) == list(range(1, 101))
        for registry in (one, two):
            assert registry.get("/subjects/s/versions").body == list(range(1, 101))
    with gateway(broker.bootstrap) as later:
        for number, each in enumerate(made):
            assert later.get(f"/schemas/ids/{each.body['id']}/schema").body == schema(number)


def test_what_one_gateway_has_written_every_other_knows_at_once(broker: Broker) -> None:
    with gateway(broker.bootstrap) as one, gateway(broker.bootstrap) as two:
        for number in range(20):
            writer, reader = (one, two) if number % 2 else (two, one)
            schema_id = writer.register(f"s{number}", schema(number)).body["id"]
            assert reader.get(f"/schemas/ids/{schema_id}/schema").body == schema(number)
            assert f"s{number}" in reader.get("/subjects").body


# -- writes that go wrong --------------------------------------------------------------------------

FAULTS: dict[str, Callable[[Broker], object]] = {
    "the answer is lost": lambda broker: broker.faults.hang_up("Produce", after="append", topic=TOPIC),
    "the request is lost": lambda broker: broker.faults.hang_up("Produce", topic=TOPIC),
    "the answer is lost, and nobody says what there is": lambda broker: (
        broker.faults.hang_up("Produce", after="append", topic=TOPIC),
        broker.faults.hang_up("Fetch", topic=TOPIC, times=3),
        broker.faults.fail("Metadata", error="LEADER_NOT_AVAILABLE", times=2),
    ),
    "another leader": lambda broker: broker.faults.fail(
        "Produce", error="NOT_LEADER_OR_FOLLOWER", times=3, topic=TOPIC
    ),
    "too few replicas": lambda broker: broker.faults.fail(
        "Produce", error="NOT_ENOUGH_REPLICAS", times=2, topic=TOPIC
    ),
    "it may have been written": lambda broker: broker.faults.fail(
        "Produce", error="REQUEST_TIMED_OUT", times=1, topic=TOPIC
    ),
    "reading fails": lambda broker: broker.faults.fail(
        "Fetch", error="NOT_LEADER_OR_FOLLOWER", times=3, topic=TOPIC
    ),
    "a leader that does not know yet": lambda broker: (
        broker.faults.drop_connections(),
        broker.faults.fail("ListOffsets", error="OFFSET_NOT_AVAILABLE", times=2, topic=TOPIC),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_schema_is_written_once_whatever_goes_wrong(shared: Broker, fault: str) -> None:
    registry = RegistryCalls(shared.http)
    number = 1000 + list(FAULTS).index(fault)
    registry.register("before", schema(0))
    FAULTS[fault](shared)

    said = registry.register(f"s{number}", schema(number))

    assert said.status == 200, said
    assert registry.register(f"s{number}", schema(number)).body == said.body
    shared.faults.clear()
    written = [json.loads(each.key or b"").get("subject") for each in shared.records(TOPIC)]
    assert written.count(f"s{number}") == 1


def test_a_write_whose_outcome_nobody_can_tell_is_said_to_be_in_doubt(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.gateway.registry.store.TIMEOUT_S", 1.0)
    registry = RegistryCalls(broker.http)
    registry.register("s", schema(0))
    with (
        broker.faults.hang_up("Produce", after="append", topic=TOPIC),
        broker.faults.fail("ListOffsets", error="OFFSET_NOT_AVAILABLE", topic=TOPIC),  # asked of a new leader
    ):
        said = registry.register("t", schema(1))
    assert said.status == 503
    assert "not known" in said.body["message"]

    assert registry.register("t", schema(1)).body["id"] == 2
    assert len(broker.records(TOPIC)) == 2


def test_a_schema_that_is_known_is_told_while_no_broker_answers(broker: Broker) -> None:
    registry = RegistryCalls(broker.http)
    schema_id = registry.register("s", schema(0)).body["id"]
    registry.get(f"/schemas/ids/{schema_id}")
    with broker.faults.refuse_connections():
        assert registry.get("/subjects").status == 503
        assert registry.get(f"/schemas/ids/{schema_id}/schema").body == schema(0)
        assert registry.register("t", schema(1)).status == 503

    assert registry.get("/subjects").body == ["s"]


def test_those_who_wait_for_a_leader_wait_side_by_side(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.gateway.registry.store.TIMEOUT_S", 0.5)
    registry = RegistryCalls(broker.http)
    registry.register("s", schema(0))
    with (
        broker.faults.fail("Fetch", error="NOT_LEADER_OR_FOLLOWER", topic=TOPIC) as fault,
        ThreadPoolExecutor(16) as pool,
    ):
        first = pool.submit(registry.get, "/subjects")
        fault.wait()
        said = [first.result(), *pool.map(lambda _: registry.get("/subjects"), range(16))]
        asked = len(fault.hits)

    assert {each.status for each in said} == {503}
    assert asked < 17 * 5 / 2  # for each of them asks five times in that time
    assert registry.get("/subjects").body == ["s"]


def test_other_parts_of_the_gateway_ask_it_without_http(broker: Broker) -> None:
    reach = Reach(GatewaySettings(bootstrap=broker.bootstrap))
    registry = SchemaRegistry(reach)
    made = registry.register("s", SubmittedSchema(Schema(SchemaType.AVRO, '{"type": "string"}')))

    assert (made.id, made.version) == (1, 1)
    assert registry.understood(registry.by_id(1)).canonical == '"string"'
    assert registry.latest("s") == made
    with pytest.raises(NoSuchSchema):
        registry.by_id(2)
    reach.close()


# -- topics of other people ------------------------------------------------------------------------

THEIRS: list[tuple[bytes | None, bytes | None]] = [
    (b'{"keytype":"NOOP","magic":0}', None),
    (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"NONE"}'),
    (
        b'{"keytype": "SCHEMA", "subject": "theirs", "version": 1, "magic": 1}',
        b'{"subject":"theirs","version":1,"id":41,"schema":"{\\"type\\":\\"string\\"}","deleted":false}',
    ),
    (b"rubbish", b"more of it"),
    (b'{"keytype":"ASSOC","magic":0}', b"{}"),
    (
        b'{"keytype":"SCHEMA","subject":"theirs","version":2,"magic":1}',
        b'{"subject":"theirs","version":2,"id":41,"schema":"\\"int\\"","deleted":false}',
    ),
]


def write_theirs(broker: Broker) -> None:
    broker.create_topic(TOPIC, partitions=1, configs={"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for key, value in THEIRS:
        producer.produce(TOPIC, value, key)
    producer.flush()


def test_a_topic_of_another_registry_is_read_and_what_is_odd_in_it_passed_over(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    write_theirs(broker)
    registry = RegistryCalls(broker.http)
    with caplog.at_level(logging.WARNING, "headrace.gateway.registry"):
        assert registry.get("/subjects/theirs/versions").body == [1]

    assert registry.get("/config").body == {"compatibilityLevel": "NONE"}
    assert registry.get("/schemas/ids/41/schema").body == {"type": "string"}
    passed_over = [each for each in caplog.messages if "is skipped" in each]
    assert [each.partition("offset ")[2][0] for each in passed_over] == ["3", "4", "5"]


def test_without_the_setting_one_gateway_writes_as_well_and_says_that_it_should_be_alone(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    write_theirs(broker)
    registry = RegistryCalls(broker.http)
    with caplog.at_level(logging.WARNING, "headrace.gateway.registry"):
        made = [registry.register("ours", schema(number)).body["id"] for number in range(3)]

    assert made == [42, 43, 44]
    assert sum(COMPARES in each for each in caplog.messages) == 1


def test_a_record_is_taken_back_by_the_key_that_another_registry_gave_it(broker: Broker) -> None:
    write_theirs(broker)
    registry = RegistryCalls(broker.http)
    registry.delete("/subjects/theirs")
    registry.delete("/subjects/theirs?permanent=true")

    gone = [each.key for each in broker.records(TOPIC) if each.value is None]
    assert THEIRS[2][0] in gone


def test_the_setting_may_be_changed_while_gateways_run(broker: Broker) -> None:
    write_theirs(broker)
    registry = RegistryCalls(broker.http)
    registry.register("s", schema(0))
    for number, value in enumerate(["true", "false", "true"], start=1):
        broker.admin.alter_topic_configs(TOPIC, sets={COMPARES: value})
        assert registry.register("s", schema(number)).status == 200

    assert registry.get("/subjects/s/versions").body == [1, 2, 3, 4]


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_topic_that_would_lose_schemas_is_not_written_to(broker: Broker, policy: str) -> None:
    broker.create_topic(TOPIC, partitions=1, configs={"cleanup.policy": policy})
    registry = RegistryCalls(broker.http)
    said = registry.register("s", schema(0))
    assert (said.status, said.code) == (500, 50001)
    assert "cleanup.policy" in said.body["message"]
    assert registry.get("/subjects").body == []

    broker.admin.alter_topic_configs(TOPIC, sets={"cleanup.policy": "compact"})
    assert registry.register("s", schema(0)).status == 200


def test_a_topic_of_several_partitions_is_not_written_to(broker: Broker) -> None:
    broker.create_topic(TOPIC, partitions=2, configs={"cleanup.policy": "compact"})

    assert "2 partitions" in RegistryCalls(broker.http).register("s", schema(0)).body["message"]


def test_a_topic_that_is_another_one_by_now_is_read_from_the_beginning(broker: Broker) -> None:
    registry = RegistryCalls(broker.http)
    registry.register("s", schema(0))
    registry.register("s2", schema(1))
    broker.admin.delete_topic(TOPIC)
    assert registry.get("/subjects").body == []

    assert registry.register("t", schema(2)).body["id"] == 1
    assert registry.get("/subjects").body == ["t"]


def test_a_topic_that_was_compacted_is_read_and_written_on() -> None:
    eager = {"log.cleaner.backoff.ms": "50", "log.segment.bytes": "1024", "log.roll.ms": "1000"}
    compact = {
        "cleanup.policy": "compact",
        COMPARES: "true",
        "segment.bytes": "2048",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "0",
    }
    with Broker(eager) as broker:
        broker.create_topic(TOPIC, partitions=1, configs=compact)
        with gateway(broker.bootstrap) as registry:
            kept = registry.register("kept", schema(100)).body
            for number in range(15):
                registry.register("gone", schema(number))
                registry.delete("/subjects/gone")
                registry.delete("/subjects/gone?permanent=true")
            written = broker.admin.describe_topic(TOPIC).partitions[0].next_offset or 0
            wait_until(lambda: len(broker.records(TOPIC)) < written / 2)

        with gateway(broker.bootstrap) as later:
            assert later.get("/subjects?deleted=true").body == ["kept"]
            assert later.get(f"/schemas/ids/{kept['id']}/schema").body == schema(100)
            assert later.register("new", schema(101)).body["id"] == 17
            assert later.get("/subjects").body == ["kept", "new"]


def test_a_topic_whose_records_were_deleted_is_begun_anew(broker: Broker) -> None:
    registry = RegistryCalls(broker.http)
    registry.register("s", schema(0))
    registry.register("s", schema(0))
    end = TopicPartition(TOPIC, 0, -1)
    broker.admin.alter_topic_configs(TOPIC, sets={"cleanup.policy": "compact,delete"})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.delete_records([end])[end].result(30)
    broker.admin.alter_topic_configs(TOPIC, sets={"cleanup.policy": "compact"})
    with gateway(broker.bootstrap) as later:
        assert later.get("/subjects").body == []
        assert later.register("t", schema(1)).status == 200
        assert later.get("/subjects").body == ["t"]


# -- crashes ---------------------------------------------------------------------------------------


def test_what_was_acknowledged_is_there_after_gateway_and_broker_were_killed() -> None:
    with Broker(process=True) as broker:
        with gateway_process(broker.bootstrap) as (registry, process), ThreadPoolExecutor(2) as pool:
            registry.put("/config", {"compatibility": "NONE"})

            def write(number: int) -> tuple[int, Any]:
                try:
                    return number, registry.register("s", schema(number)).body
                except (OSError, HTTPException):  # killed before, or in the middle of a response
                    return number, None
                finally:
                    if number == 40:
                        process.kill()

            written = list(pool.map(write, range(60)))
        acknowledged = {number: body for number, body in written if body is not None}
        assert 20 < len(acknowledged) < 60
        broker.kill()
        broker.restart()
        with gateway(broker.bootstrap) as later:
            versions = later.get("/subjects/s/versions").body
            assert versions == list(range(1, len(versions) + 1))
            for number, body in acknowledged.items():
                found = later.get(f"/subjects/s/versions/{body['version']}").body
                assert (found["id"], json.loads(found["schema"])) == (body["id"], schema(number))


def test_a_cluster_goes_on_when_the_leader_of_the_topic_dies() -> None:
    with Cluster(3) as cluster, gateway(cluster.bootstrap) as one, gateway(cluster.bootstrap) as two:
        made = [(one, two)[number % 2].register(f"s{number}", schema(number)) for number in range(4)]
        settings = settings_of(cluster)
        assert settings["min.insync.replicas"] == "2"
        assert cluster.admin.describe_topic(TOPIC).replicas == 3

        cluster.kill(cluster.leader_of(TOPIC))
        made += [(one, two)[number % 2].register(f"s{number}", schema(number)) for number in range(4, 8)]

        assert [each.body["id"] for each in made] == list(range(1, 9))
        assert one.get("/subjects").body == two.get("/subjects").body == [f"s{number}" for number in range(8)]
