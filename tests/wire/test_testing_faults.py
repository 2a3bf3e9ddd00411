"""Faults: whom they meet, how often, what they leave alone, and how they end."""

import time
from collections.abc import Iterator

import pytest

from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.heartbeat import HeartbeatRequest
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from headrace.protocol.schema.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.protocol.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.testing import Broker
from support.records import make_batch
from wire.raw import CLIENT_ID, RawClient
from wire.requests import fetch_request, fresh_name, produce, produce_request

BUSY = ErrorCode.NOT_LEADER_OR_FOLLOWER
ANYTHING = MetadataRequest(topics=[])
METADATA_VERSION = 12


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def served(shared: Broker) -> Iterator[Broker]:
    yield shared
    shared.faults.clear()
    shared.faults.hits.clear()


@pytest.fixture
def client(served: Broker) -> Iterator[RawClient]:
    with RawClient(served.bootstrap) as connected:
        yield connected


@pytest.fixture
def topic(served: Broker) -> str:
    served.create_topic(name := fresh_name("faulty"))
    return name


def is_served(client: RawClient) -> bool:
    return bool(client.ask(ANYTHING, METADATA_VERSION).brokers)


# -- failing ---------------------------------------------------------------------------------------


def test_a_refused_write_is_not_in_the_log(served: Broker, client: RawClient, topic: str) -> None:
    with served.faults.fail("Produce", error=BUSY) as fault:
        assert produce(client, topic).error_code == BUSY

    assert served.records(topic) == []
    assert [(hit.api, hit.client_id, hit.topics) for hit in fault.hits] == [("Produce", CLIENT_ID, (topic,))]


def test_a_fault_ends_when_its_times_are_used_up(served: Broker, client: RawClient, topic: str) -> None:
    served.faults.fail("Produce", error="not_leader_or_follower", times=2)

    assert [produce(client, topic).error_code for _ in range(3)] == [BUSY, BUSY, 0]


def test_a_fault_ends_with_its_block_and_when_it_is_cleared(
    served: Broker, client: RawClient, topic: str
) -> None:
    with served.faults.fail("Produce", error=BUSY):
        assert produce(client, topic).error_code == BUSY
    assert produce(client, topic).error_code == 0

    fault = served.faults.fail("Produce", error=BUSY)
    assert produce(client, topic).error_code == BUSY
    fault.clear()
    assert produce(client, topic).error_code == 0


def two_topics(first: str, second: str, acks: int = 1) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(name=name, partition_data=[PartitionProduceData(index=0, records=make_batch())])
            for name in (first, second)
        ],
    )


def test_one_topic_of_a_request_fails_and_the_other_is_served(
    served: Broker, client: RawClient, topic: str
) -> None:
    served.create_topic(other := fresh_name("well"))

    with served.faults.fail("Produce", error=BUSY, topic=topic):
        response = client.ask(two_topics(topic, other), 9)

    found = {each.name: each.partition_responses[0].error_code for each in response.responses}
    assert found == {topic: BUSY, other: 0}
    assert (len(served.records(topic)), len(served.records(other))) == (0, 1)


def test_topics_are_known_by_their_ids_too(served: Broker, client: RawClient, topic: str) -> None:
    named = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    (described,) = client.ask(named, METADATA_VERSION).topics

    with served.faults.fail("Produce", error=BUSY, topic=topic):
        response = client.ask(produce_request(described.topic_id), 13)

    assert response.responses[0].partition_responses[0].error_code == BUSY


def test_one_topic_of_a_group_s_offsets_fails(served: Broker, client: RawClient, topic: str) -> None:
    topics = [OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in (topic, "other")]
    group = OffsetFetchRequestGroup(group_id="readers", topics=topics)
    request = OffsetFetchRequest(groups=[group])
    client.ask(FindCoordinatorRequest(key="readers"), 1)  # has the topic for groups made

    with served.faults.fail("OffsetFetch", error="UNSTABLE_OFFSET_COMMIT", topic=topic):
        (answered,) = client.ask(request, 8).groups

    found = {each.name: each.partitions[0].error_code for each in answered.topics}
    assert found == {topic: ErrorCode.UNSTABLE_OFFSET_COMMIT, "other": 0}


def test_metadata_fails_for_topics_and_still_tells_of_brokers(
    served: Broker, client: RawClient, topic: str
) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])

    with served.faults.fail("Metadata", error="LEADER_NOT_AVAILABLE", topic=topic):
        response = client.ask(request, METADATA_VERSION)

    assert [each.error_code for each in response.topics] == [ErrorCode.LEADER_NOT_AVAILABLE]
    assert [each.node_id for each in response.brokers] == [1]


def test_a_fetch_session_is_ended_so_that_its_partitions_can_fail(
    served: Broker, client: RawClient, topic: str
) -> None:
    wanted = FetchTopic(
        topic=topic, partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
    )
    begun = client.ask(
        FetchRequest(max_wait_ms=0, min_bytes=0, session_id=0, session_epoch=0, topics=[wanted]), 12
    )
    assert begun.session_id

    with served.faults.fail("Fetch", error=BUSY, topic=topic) as fault:
        silent = FetchRequest(
            max_wait_ms=0, min_bytes=0, session_id=begun.session_id, session_epoch=1, topics=[]
        )
        assert client.ask(silent, 12).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert fault.hits == []
        again = client.ask(fetch_request(topic), 12)

    assert again.responses[0].partitions[0].error_code == BUSY


def test_a_produce_that_wants_no_answer_gets_the_end_of_its_connection(
    served: Broker, client: RawClient, topic: str
) -> None:
    with served.faults.fail("Produce", error=BUSY):
        client.send(produce_request(topic, acks=0), 9)
        assert client.is_closed_by_the_broker()


# -- hanging up, delaying, cutting off -------------------------------------------------------------


def test_hanging_up_before_leaves_nothing_done(served: Broker, client: RawClient, topic: str) -> None:
    served.faults.hang_up("Produce")

    client.send(produce_request(topic), 9)

    assert client.is_closed_by_the_broker()
    assert served.records(topic) == []


@pytest.mark.parametrize("acks", [1, -1])
def test_hanging_up_after_the_append_loses_only_the_acknowledgement(
    served: Broker, client: RawClient, topic: str, acks: int
) -> None:
    served.faults.hang_up("Produce", after="append")

    client.send(produce_request(topic, acks=acks), 9)

    assert client.is_closed_by_the_broker()
    assert len(served.records(topic)) == 1


def test_a_delayed_answer_comes_later_and_what_it_is_about_is_done(
    served: Broker, client: RawClient, topic: str
) -> None:
    fault = served.faults.delay("Produce", seconds=0.3, times=1)
    began = time.monotonic()

    client.send(produce_request(topic), 9)
    fault.wait()
    assert len(served.records(topic)) == 1
    client.receive(produce_request(topic), 9)

    assert time.monotonic() - began >= 0.3


def test_answers_keep_their_order_behind_a_delayed_one(served: Broker, client: RawClient, topic: str) -> None:
    served.faults.delay("Produce", seconds=0.1, times=1)

    sent = [client.send(produce_request(topic), 9) for _ in range(3)]
    answers = [client.receive_numbered(produce_request(topic), 9) for _ in sent]

    assert [number for number, _ in answers] == sent
    offsets = [each.responses[0].partition_responses[0].base_offset for _, each in answers]
    assert offsets == [0, 1, 2]


def test_everybody_or_one_client_is_cut_off(served: Broker, client: RawClient) -> None:
    assert is_served(client)

    assert served.faults.drop_connections(client_id="somebody else") == 0
    assert is_served(client)
    assert served.faults.drop_connections(client_id=CLIENT_ID) == 1
    assert client.is_closed_by_the_broker()

    with RawClient(served.bootstrap) as again:
        assert is_served(again)
        assert served.faults.drop_connections() == 1
        assert again.is_closed_by_the_broker()
    assert [hit.fault for hit in served.faults.hits] == ["drop connections"] * 2


def test_a_broker_that_refuses_connections_is_gone_and_comes_back(served: Broker, client: RawClient) -> None:
    assert is_served(client)

    with served.faults.refuse_connections() as fault:
        assert client.is_closed_by_the_broker()
        with RawClient(served.bootstrap) as refused:
            assert refused.is_closed_by_the_broker()
        fault.wait()

    with RawClient(served.bootstrap) as again:
        assert is_served(again)


# -- whom faults meet ------------------------------------------------------------------------------


def test_a_fault_for_one_client_leaves_others_alone(served: Broker, client: RawClient, topic: str) -> None:
    with served.faults.fail("Produce", error=BUSY, client_id="somebody else") as fault:
        assert produce(client, topic).error_code == 0
        assert fault.hits == []
    with served.faults.fail("Produce", error=BUSY, client_id=CLIENT_ID):
        assert produce(client, topic).error_code == BUSY


def test_the_fixture_s_own_requests_meet_no_faults(served: Broker, topic: str) -> None:
    with (
        served.faults.fail("Produce", error=BUSY),
        served.faults.fail("Fetch", error=BUSY),
        served.faults.fail("Metadata", error="LEADER_NOT_AVAILABLE"),
        served.faults.fail("CreateTopics", error="POLICY_VIOLATION"),
    ):
        served.produce(topic, "tea")
        served.create_topic(fresh_name("made"))

        assert [record.value for record in served.records(topic)] == [b"tea"]
    assert served.faults.hits == []


def test_whoever_waits_for_a_fault_in_vain_is_told_what_it_was(served: Broker) -> None:
    with (
        served.faults.fail("Fetch", error=BUSY, topic="orders") as fault,
        pytest.raises(TimeoutError, match=r"fail Fetch with NOT_LEADER_OR_FOLLOWER, topic='orders': 0 hits"),
    ):
        fault.wait(timeout_s=0.01)


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "options", "sentence"),
    [
        ("Produse", {"error": BUSY}, "there is no API 'Produse': did you mean Produce"),
        ("zzz", {"error": BUSY}, "there is no API 'zzz': there are AddOffsetsToTxn, "),
        ("Fetch", {"error": "NOT_LEADER"}, "did you mean NOT_LEADER_OR_FOLLOWER"),
        ("Fetch", {"error": "NONE"}, "NONE is not an error"),
        ("Fetch", {"error": BUSY, "times": 0}, "times=0"),
        ("Heartbeat", {"error": BUSY, "topic": "orders"}, "a request of Heartbeat names no topics"),
    ],
)
def test_what_cannot_be_a_fault_is_refused_with_a_sentence(
    served: Broker, client: RawClient, api: str, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        served.faults.fail(api, **options)  # type: ignore[arg-type]

    assert client.ask(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 0) is not None
    assert served.faults.hits == []


def test_a_delay_into_the_past_and_an_unknown_moment_are_refused(served: Broker) -> None:
    with pytest.raises(ValueError, match="expected a delay that is not negative"):
        served.faults.delay("Fetch", seconds=-1)
    with pytest.raises(ValueError, match="expected 'append'"):
        served.faults.hang_up("Fetch", after="later")  # type: ignore[arg-type]


def test_apis_go_by_either_way_of_writing_them(served: Broker, client: RawClient, topic: str) -> None:
    with served.faults.fail("list_offsets", error=BUSY), served.faults.fail("PRODUCE", error=BUSY):
        assert produce(client, topic).error_code == BUSY
