"""REST proxy, v2: consumers, which stay from one request to the next."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headrace.gateway.problems import Problem
from headrace.gateway.rest.instance import ConsumerOptions
from headrace.gateway.rest.instances import Instances
from headrace.testing import Broker
from http_support.asking import Asking, v2, wait_until
from support.process import UpProcess


@contextmanager
def consumer(gateway: Asking, group: str, **settings: Any) -> Iterator[str]:
    """The address of a consumer that reads from the beginning."""
    body = {"format": "json", "auto.offset.reset": "earliest", **settings}
    made = gateway.post(f"/consumers/{group}", body)
    assert made["base_uri"] == f"{gateway.url}/consumers/{group}/instances/{made['instance_id']}"
    yield made["base_uri"]
    gateway("DELETE", made["base_uri"])


def read(gateway: Asking, uri: str, count: int) -> list[Any]:
    """So many records' values, in as many requests as it takes."""
    found: list[Any] = []

    def enough() -> bool:
        found.extend(each["value"] for each in gateway.get(f"{uri}/records?timeout=500"))
        return len(found) >= count

    wait_until(enough, f"{count} records have not come, only {found}")
    return found


def places(topic: str, *indexes: int) -> dict[str, Any]:
    return {"partitions": [{"topic": topic, "partition": index} for index in indexes]}


def test_a_consumer_from_its_making_to_its_end(gateway: Asking) -> None:
    topic = gateway.topic(partitions=2)
    gateway.write(topic, *range(10), encoding="json")
    with consumer(gateway, "life-of-v2", name="one") as uri:
        assert gateway.get(f"{uri}/subscription") == {"topics": []}
        gateway.post(f"{uri}/subscription", {"topics": [topic]})
        assert gateway.get(f"{uri}/subscription") == {"topics": [topic]}, "before anything is assigned, too"
        assert sorted(read(gateway, uri, 10)) == list(range(10))
        assert gateway.get(f"{uri}/assignments") == places(topic, 0, 1)
        gateway.post(f"{uri}/offsets")
        committed = gateway.get(f"{uri}/offsets")["offsets"]
        assert sum(each["offset"] for each in committed) == 10
        gateway.delete(f"{uri}/subscription")
        assert gateway.get(f"{uri}/subscription") == {"topics": []}
        assert gateway.get(f"{uri}/assignments") == places(topic)
    assert gateway.refused("GET", f"{uri}/records")[:2] == (404, 40403)
    assert gateway.refused("DELETE", uri)[:2] == (404, 40403)


def test_a_group_goes_on_where_its_consumer_committed(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, *range(6), encoding="json")
    with consumer(gateway, "goes-on", **{"auto.commit.enable": "false"}) as uri:
        gateway.post(f"{uri}/subscription", {"topics": [topic]})
        assert read(gateway, uri, 6) == [0, 1, 2, 3, 4, 5]
        last_done = {"offsets": [{"topic": topic, "partition": 0, "offset": 3}]}
        gateway.post(f"{uri}/offsets", last_done)
    with consumer(gateway, "goes-on") as uri:
        gateway.post(f"{uri}/subscription", {"topic_pattern": f"{topic}.*"})
        assert read(gateway, uri, 2) == [4, 5]
        assert gateway.get(f"{uri}/subscription") == {"topics": [topic]}, "as the pattern has led there"


def test_a_commit_of_no_offsets_is_of_all_that_was_read(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, *range(6), encoding="json")
    with consumer(gateway, "all-that-was-read", **{"auto.commit.enable": "false"}) as uri:
        gateway.post(f"{uri}/subscription", {"topics": [topic]})
        assert read(gateway, uri, 6) == [0, 1, 2, 3, 4, 5]
        gateway.post(f"{uri}/offsets", {})
        (committed,) = gateway.get(f"{uri}/offsets")["offsets"]
        assert committed["offset"] == 6


def test_a_commit_for_a_topic_that_is_not_there_names_it(gateway: Asking) -> None:
    def offsets(*topics: str) -> dict[str, Any]:
        return {"offsets": [{"topic": topic, "partition": 0, "offset": 3} for topic in topics]}

    topic = gateway.topic()
    with consumer(gateway, "nothing-there") as uri:
        gateway.post(f"{uri}/assignments", places(topic, 0))
        one = gateway.refused("POST", f"{uri}/offsets", offsets("nowhere"))
        both = gateway.refused("POST", f"{uri}/offsets", offsets("nowhere", "elsewhere"))

    assert (one[0], one[2]) == (404, "there is no topic nowhere")
    assert both[2] == "one of these topics does not exist: elsewhere, nowhere"


def test_what_was_read_is_committed_when_a_consumer_is_deleted(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, *range(3), encoding="json")
    with consumer(gateway, "auto", **{"auto.commit.enable": True}) as uri:
        gateway.post(f"{uri}/subscription", {"topics": [topic]})
        assert read(gateway, uri, 3) == [0, 1, 2]
    (found,) = gateway.get("/api/v1/groups/auto")["partitions"]
    assert (found["committed"], found["lag"]) == (3, 0)


def test_partitions_assigned_by_hand_are_read_from_anywhere(gateway: Asking) -> None:
    topic = gateway.topic(partitions=2)
    gateway.write(topic, *range(5), encoding="json", partition=1)
    with consumer(gateway, "by-hand") as uri:
        gateway.post(f"{uri}/assignments", places(topic, 1))
        assert read(gateway, uri, 5) == [0, 1, 2, 3, 4]
        gateway.post(f"{uri}/positions", {"offsets": [{"topic": topic, "partition": 1, "offset": 3}]})
        assert read(gateway, uri, 2) == [3, 4]
        gateway.post(f"{uri}/positions/beginning", places(topic, 1))
        assert read(gateway, uri, 5) == [0, 1, 2, 3, 4]
        gateway.post(f"{uri}/positions/end", places(topic, 1))
        gateway.write(topic, 5, encoding="json", partition=1)
        assert read(gateway, uri, 1) == [5]
        assert gateway.refused("POST", f"{uri}/positions/end", places(topic, 0))[:2] == (409, 40903)
        assert gateway.refused("POST", f"{uri}/subscription", {"topics": [topic]})[:2] == (409, 40903)
        assert gateway.refused("POST", f"{uri}/assignments", places(topic, 7))[:2] == (404, 40402)


def test_a_position_holds_while_the_beginning_is_still_asked_for() -> None:
    with Broker() as broker, broker.faults.delay("ListOffsets", seconds=0.2):
        gateway = Asking(broker.http)
        topic = gateway.topic()
        gateway.write(topic, *range(10), encoding="json")
        with consumer(gateway, "early") as uri:
            gateway.post(f"{uri}/assignments", places(topic, 0))
            gateway.post(f"{uri}/positions", {"offsets": [{"topic": topic, "partition": 0, "offset": 8}]})
            found = read(gateway, uri, 2)
            more = gateway.get(f"{uri}/records?timeout=1500")
        gateway.close()
    assert (found, more) == ([8, 9], [])


def test_an_answer_is_no_larger_than_it_may_be(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, *["x" * 100] * 5, encoding="json")
    with consumer(gateway, "small") as uri:
        gateway.post(f"{uri}/assignments", places(topic, 0))
        sizes: list[int] = []

        def all_read() -> bool:
            found = gateway.get(f"{uri}/records?max_bytes=250")
            sizes.extend([len(found)] if found else [])
            return sum(sizes) == 5

        wait_until(all_read, "five records have not come")
        assert max(sizes) == 2


def test_a_record_in_another_format_is_never_skipped_in_silence(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, 1, encoding="json")
    gateway.write(topic, "not json")
    gateway.write(topic, 2, encoding="json")
    with consumer(gateway, "picky") as uri:
        gateway.post(f"{uri}/assignments", places(topic, 0))
        assert read(gateway, uri, 1) == [1]
        for _ in range(2):
            status, code, said = gateway.refused("GET", f"{uri}/records?timeout=5000")
            assert (status, code) == (422, 42203)
            assert said.startswith(f"{topic}-0 at offset 1: the value is not JSON: ")
        gateway.post(f"{uri}/positions", {"offsets": [{"topic": topic, "partition": 0, "offset": 2}]})
        assert read(gateway, uri, 1) == [2]


def test_an_error_says_that_the_key_is_in_another_format(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, 1, key="not json", encoding="json")
    for kind, why in (
        ("json", "the key is not JSON: "),
        ("avro", "the key cannot be decoded: it does not begin"),
    ):
        with consumer(gateway, f"keys-{kind}", format=kind) as uri:
            gateway.post(f"{uri}/assignments", places(topic, 0))
            said = gateway.refused("GET", f"{uri}/records?timeout=5000")[2]
            assert said.startswith(f"{topic}-0 at offset 0: {why}")


def test_records_are_given_in_the_consumers_format_only(gateway: Asking) -> None:
    topic = gateway.topic()
    gateway.write(topic, "a", key="k")
    with consumer(gateway, "formats", format="binary") as uri:
        gateway.post(f"{uri}/assignments", places(topic, 0))
        assert gateway.refused("GET", f"{uri}/records", accept=v2("json"))[:2] == (406, 40601)
        assert gateway.refused("GET", f"{uri}/records", accept="text/html")[:2] == (406, 406)
        answer = wait_until(
            lambda: (found := gateway("GET", f"{uri}/records", accept=v2("binary"))).json() and found,
            "the record has not come",
        )
    assert answer.headers["content-type"] == v2("binary")
    assert answer.json() == [{"topic": topic, "key": "aw==", "value": "YQ==", "partition": 0, "offset": 0}]


def test_two_consumers_share_a_group(gateway: Asking) -> None:
    topic = gateway.topic(partitions=2)
    with consumer(gateway, "shared", name="a") as one, consumer(gateway, "shared", name="b") as other:
        assert gateway.refused("POST", "/consumers/shared", {"name": "a"})[:2] == (409, 40902)
        for uri in (one, other):
            gateway.post(f"{uri}/subscription", {"topics": [topic]})

        def is_shared() -> bool:
            for uri in (one, other):
                gateway.get(f"{uri}/records?timeout=50")
            return all(len(gateway.get(f"{uri}/assignments")["partitions"]) == 1 for uri in (one, other))

        wait_until(is_shared, "each should have one partition")


def test_a_commit_leaves_partitions_alone_that_another_has_got(gateway: Asking) -> None:
    topic = gateway.topic(partitions=2)
    for partition in (0, 1):
        gateway.write(topic, 1, 2, encoding="json", partition=partition)
    by_hand = {"auto.commit.enable": "false"}
    with consumer(gateway, "handed-on", **by_hand) as one, consumer(gateway, "handed-on", **by_hand) as other:
        gateway.post(f"{one}/subscription", {"topics": [topic]})
        assert read(gateway, one, 4) == [1, 2, 1, 2]
        gateway.post(f"{other}/subscription", {"topics": [topic]})

        def of_other() -> list[Any]:
            gateway.get(f"{one}/records?timeout=50")
            gateway.get(f"{other}/records?timeout=50")
            found: list[Any] = gateway.get(f"{other}/assignments")["partitions"]
            return found

        (lost,) = wait_until(of_other, "the other one has got nothing")
        gateway.write(topic, 3, encoding="json", partition=lost["partition"])
        gateway.post(f"{other}/offsets", {"offsets": [{**lost, "offset": 2}]})
        gateway.post(f"{one}/offsets")
        committed = gateway("GET", f"{other}/offsets", {"partitions": [lost]}).json()["offsets"]
    assert [each["offset"] for each in committed] == [3]


@pytest.mark.parametrize(
    "body",
    [
        {"format": "xml"},
        {"auto.offset.reset": "middle"},
        {"auto.commit.enable": "maybe"},
        {"fetch.min.bytes": -7},
        {"fetch.min.bytes": 10**12},
        {"consumer.request.timeout.ms": "soon"},
        {"name": ""},
        {"name": "nul\0"},
        {"surprise": 1},
        [],
    ],
)
def test_a_consumer_that_cannot_be_is_not_made(gateway: Asking, body: Any) -> None:
    assert gateway.refused("POST", "/consumers/impossible", body)[0] == 422


def test_requests_to_a_consumer_that_make_no_sense(gateway: Asking) -> None:
    with consumer(gateway, "senseless") as uri:
        assert gateway.refused("GET", f"{uri}/records")[:2] == (409, 40903)
        for path, body in (
            ("subscription", {}),
            ("subscription", {"topics": []}),
            ("subscription", {"topics": ["a"], "topic_pattern": "a"}),
            ("subscription", {"topics": "a"}),
            ("assignments", {"partitions": [{"topic": "a"}]}),
            ("assignments", {"partitions": [{"topic": "a", "partition": -1}]}),
            ("positions", {"offsets": [{"topic": "a", "partition": 0, "offset": -5}]}),
            ("offsets", {"offsets": [{"topic": "a", "partition": 0}]}),
            ("offsets", {"offsets": 7}),
            ("offsets", {"offsets": [{"topic": "a", "partition": 0, "offset": 2**63 - 1}]}),
        ):
            assert gateway.refused("POST", f"{uri}/{path}", body)[0] == 422, (path, body)
        assert gateway.refused("POST", f"{uri}/subscription", {"topic_pattern": "^((("})[0] == 400
        assert gateway.refused("GET", f"{uri}/records?timeout=999999")[0] == 422
        assert gateway.refused("GET", f"{uri}/offsets", {"partitions": 1})[0] == 422


def test_a_consumer_that_nobody_uses_is_closed(broker: UpProcess) -> None:
    instances = Instances(lambda: broker.bootstrap, idle_s=0.1)
    instances.create("idle", "one", ConsumerOptions())
    wait_until(lambda: len(instances) == 0, "it is still there")
    with pytest.raises(Problem, match=r"idle for 0\.1 s.*create it again \(POST /consumers/idle\)"):
        instances.get("idle", "one")
    instances.create("idle", "one", ConsumerOptions())  # its name is free again
    instances.close()
