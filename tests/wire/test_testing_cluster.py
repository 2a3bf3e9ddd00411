"""The cluster of a test: replicas, elections, and brokers that are killed, paused and started again."""

import logging
from collections.abc import Iterator

import pytest

from headrace.client.errors import NoSuchTopic
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.testing import Cluster
from wire.confluent import send, sent_offsets
from wire.leftovers import in_use
from wire.raw import RawClient
from wire.requests import fresh_name, produce


@pytest.fixture(scope="module")
def served() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster
        cluster.faults.clear()


@pytest.fixture
def topic(served: Cluster) -> str:
    served.create_topic(name := fresh_name("replicated"))
    return name


def values(cluster: Cluster, topic: str) -> list[bytes | None]:
    return [record.value for record in cluster.records(topic)]


def test_topics_have_three_replicas_and_every_broker_knows_them(served: Cluster, topic: str) -> None:
    served.wait_until_in_sync()

    assert served.brokers == [1, 2, 3]
    assert len(served.bootstrap.split(",")) == 3
    (partition,) = served.admin.describe_topic(topic).partitions
    assert sorted(partition.in_sync) == [1, 2, 3]
    assert partition.leader == served.leader_of(topic)


@pytest.mark.parametrize("process", [False, True])
def test_what_has_been_said_since_is_told_whoever_said_it(*, process: bool) -> None:
    here = logging.getLogger("headrace.coordination.embedded.server")
    with Cluster(2, process=process) as cluster:

        def complain(bootstrap: str, length: int) -> None:
            with RawClient(bootstrap) as client:
                client.socket.sendall(length.to_bytes(4, "big"))
                assert client.is_closed_by_the_broker()

        first, second = cluster.bootstrap.split(",")
        complain(second, 2_000_000_001)
        cluster._call(here.warning, "the coordinator complains")
        seen = cluster.log_seen
        assert cluster.log_since(seen) == []

        complain(first, 2_000_000_002)
        cluster._call(here.warning, "the coordinator complains again")

        since = "\n".join(cluster.log_since(seen)).replace(",", "")
        assert "2000000002" in since
        assert "complains again" in since
        assert "2000000001" not in since
        assert len(cluster.log_since(seen)) == 2
        assert len(cluster.log) == 4


@pytest.mark.parametrize("process", [False, True])
def test_a_leader_that_is_killed_is_followed_by_another_and_nothing_is_lost(*, process: bool) -> None:
    with Cluster(process=process, topics={"payments": 1}) as cluster:
        send(cluster.bootstrap, "payments", [{"value": b"first"}], acks="all")
        leader = cluster.leader_of("payments")

        cluster.kill(leader)
        assert leader not in cluster.brokers
        assert cluster.leader_of("payments") != leader
        reports = send(cluster.bootstrap, "payments", [{"value": b"second"}], acks="all")
        assert sent_offsets(reports) == [1]
        assert values(cluster, "payments") == [b"first", b"second"]

        cluster.restart(leader)
        cluster.wait_until_in_sync()
        assert cluster.brokers == [1, 2, 3]


def test_a_broker_that_leaves_in_order_hands_its_partitions_over(served: Cluster, topic: str) -> None:
    leader = served.leader_of(topic)

    served.stop_broker(leader)
    try:
        assert served.leader_of(topic) != leader
    finally:
        served.restart(leader)
    served.wait_until_in_sync()


def test_a_paused_broker_falls_behind_and_catches_up() -> None:
    with Cluster(process=True, settings={"replica.lag.time.max.ms": 1000}, topics={"payments": 1}) as cluster:
        leader = cluster.leader_of("payments")
        follower = next(each for each in cluster.brokers if each != leader)

        cluster.pause(follower)
        reports = send(cluster.bootstrap_of(leader), "payments", [{"value": b"tea"}], acks="all")
        assert sent_offsets(reports) == [0]  # once the leader has given it up
        with pytest.raises(TimeoutError, match="all replicas in sync"):
            cluster.wait_until_in_sync(timeout_s=0)
        cluster.resume(follower)

        cluster.wait_until_in_sync()
        assert values(cluster, "payments") == [b"tea"]


def test_a_fault_may_be_of_one_broker_alone(served: Cluster, topic: str) -> None:
    leader = served.leader_of(topic)
    busy = ErrorCode.REQUEST_TIMED_OUT

    with RawClient(served.bootstrap_of(leader)) as client:
        with served.faults.fail("Produce", error=busy, broker_id=leader % 3 + 1):
            assert produce(client, topic).error_code == 0
        with served.faults.fail("Produce", error=busy, broker_id=leader) as fault:
            assert produce(client, topic).error_code == busy

    assert [hit.broker_id for hit in fault.hits] == [leader]


def test_replicas_fetch_from_each_other_whatever_clients_meet(served: Cluster, topic: str) -> None:
    with served.faults.fail("Fetch", error="NOT_LEADER_OR_FOLLOWER") as fault:
        reports = send(served.bootstrap, topic, [{"value": b"tea"}], acks="all")
        assert fault.hits == []

    assert sent_offsets(reports) == [0]


def test_what_the_controller_answers_meets_faults_at_every_broker(served: Cluster) -> None:
    wanted = CreatableTopic(name="never", num_partitions=1, replication_factor=1, assignments=(), configs=())
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=1000)

    with served.faults.fail("CreateTopics", error="POLICY_VIOLATION", client_id="raw") as fault:
        for broker_id in served.brokers:
            with RawClient(served.bootstrap_of(broker_id)) as client:
                (refused,) = client.ask(request, 7).topics
                assert refused.error_code == ErrorCode.POLICY_VIOLATION

    assert [hit.broker_id for hit in fault.hits] == served.brokers


def test_what_is_not_there_is_refused_with_a_sentence(served: Cluster, topic: str) -> None:
    with pytest.raises(ValueError, match="there is no broker 4, only 1, 2, 3"):
        served.kill(4)
    with pytest.raises(NoSuchTopic):
        served.leader_of("unknown")
    with pytest.raises(NoSuchTopic):
        served.leader_of(topic, 7)
    with pytest.raises(ValueError, match="brokers=0"):
        Cluster(brokers=0)


def test_a_cluster_leaves_no_thread() -> None:
    with Cluster(brokers=2):
        pass
    threads, _ = in_use()

    with Cluster(brokers=2, topics={"payments": 4}) as cluster:
        cluster.produce("payments", "tea")

    assert in_use()[0] == threads
