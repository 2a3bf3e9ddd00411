"""Incremental fetch sessions over the wire (KIP-227)."""

from pathlib import Path
from typing import Any

import pytest

from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.schema.fetch import ForgottenTopic
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from support.process import ClusterProcess
from support.records import make_batch
from wire.process import BrokerProcess
from wire.raw import RawClient
from wire.requests import create_topic, fetch_request, fresh_name, produce, produce_request, records_in

V = 12


@pytest.fixture
def topic(raw: RawClient) -> str:
    name = fresh_name("session")
    create_topic(raw, name, partitions=3)
    return name


def opened(raw: RawClient, topic: str) -> int:
    """The id of a session on all three partitions."""
    answer = raw.ask(fetch_request(topic, partitions=(0, 1, 2), session_epoch=0), V)
    assert answer.error_code == 0
    assert answer.session_id != 0
    assert [each.partition_index for each in answer.responses[0].partitions] == [0, 1, 2]
    session_id: int = answer.session_id
    return session_id


def incremental(raw: RawClient, session_id: int, epoch: int, topic: str = "", **options: Any) -> Any:
    partitions = options.pop("partitions", ())
    return raw.ask(
        fetch_request(topic, partitions=partitions, session_id=session_id, session_epoch=epoch, **options), V
    )


def news(answer: Any) -> dict[int, int]:
    """How many records came of each partition that the answer names."""
    return {
        partition.partition_index: len(records_in(partition))
        for response in answer.responses
        for partition in response.partitions
    }


def test_an_incremental_reply_names_only_what_has_changed(raw: RawClient, topic: str) -> None:
    session = opened(raw, topic)
    assert news(incremental(raw, session, 1)) == {}

    produce(raw, topic, make_batch(2), partition=1)

    assert news(incremental(raw, session, 2)) == {1: 2}
    assert news(incremental(raw, session, 3, topic, partitions=[1], offset=2)) == {}


def test_a_request_may_add_partitions_and_forget_others(raw: RawClient, topic: str) -> None:
    answer = raw.ask(fetch_request(topic, partitions=(0,), session_epoch=0), V)
    for partition in range(3):
        produce(raw, topic, partition=partition)

    request = fetch_request(topic, partitions=(2,), session_id=answer.session_id, session_epoch=1)
    forgetting = type(request)(
        max_wait_ms=0,
        min_bytes=1,
        topics=request.topics,
        session_id=answer.session_id,
        session_epoch=1,
        forgotten_topics_data=[ForgottenTopic(topic=topic, partitions=[0])],
    )

    assert news(raw.ask(forgetting, V)) == {2: 1}


def test_an_epoch_out_of_turn_is_an_error_and_the_session_stays(raw: RawClient, topic: str) -> None:
    session = opened(raw, topic)

    wrong = incremental(raw, session, 5)

    assert wrong.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert incremental(raw, session, 1).error_code == 0


def test_an_unknown_session_is_an_error(raw: RawClient) -> None:
    assert incremental(raw, 123_456, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_was_closed_is_gone(raw: RawClient, topic: str) -> None:
    session = opened(raw, topic)

    closing = raw.ask(fetch_request(topic, session_id=session, session_epoch=-1), V)

    assert closing.session_id == 0
    assert incremental(raw, session, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_client_is_answered_without_a_session_while_all_are_in_use(tmp_path: Path) -> None:
    slots = {"max.incremental.fetch.session.cache.slots": "2"}
    with BrokerProcess(tmp_path, slots) as broker, RawClient(broker.bootstrap) as client:
        create_topic(client, "t", partitions=3)
        first, second = opened(client, "t"), opened(client, "t")

        answer = client.ask(fetch_request("t", partitions=range(3), session_epoch=0), V)

        assert (answer.error_code, answer.session_id) == (0, 0)
        assert len(answer.responses[0].partitions) == 3
        assert incremental(client, first, 1).error_code == 0
        assert incremental(client, second, 1).error_code == 0


def test_partitions_that_do_not_exist_are_answered_and_no_session_is_opened(
    raw: RawClient, topic: str
) -> None:
    answer = raw.ask(fetch_request(topic, partitions=(0, 99), session_epoch=0), V)

    assert answer.session_id == 0
    codes = {each.partition_index: each.error_code for each in answer.responses[0].partitions}
    assert codes == {0: 0, 99: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_partition_that_does_not_exist_ends_the_session_it_is_added_to(raw: RawClient, topic: str) -> None:
    session = opened(raw, topic)

    added = raw.ask(fetch_request(topic, partitions=(99,), session_id=session, session_epoch=1), V)

    assert (added.error_code, added.session_id) == (0, 0)
    assert added.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert incremental(raw, session, 2).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_long_poll_of_a_session_is_woken_by_an_append(
    broker: BrokerProcess, raw: RawClient, topic: str
) -> None:
    session = opened(raw, topic)
    waiting = fetch_request(topic, partitions=(), session_id=session, session_epoch=1, max_wait_ms=60_000)
    raw.send(waiting, V)
    assert not raw.has_something_to_read(0.05)

    with RawClient(broker.bootstrap) as other:
        produce(other, topic, partition=2)

    assert news(raw.receive(waiting, V)) == {2: 1}


def test_one_session_cannot_name_topics_in_two_ways(raw: RawClient) -> None:
    topic_id = create_topic(raw, name := fresh_name("two-ways"))
    answer = raw.ask(fetch_request(name, session_epoch=0), V)

    mixed = raw.ask(fetch_request(topic_id, session_id=answer.session_id, session_epoch=1), 13)

    assert mixed.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_every_partition_of_a_session_gets_its_turn(raw: RawClient, topic: str) -> None:
    for partition in range(3):
        for _ in range(3):
            produce(raw, topic, make_batch([b"x" * 1000]), partition=partition)
    session = opened(raw, topic)

    served = [
        next(
            number
            for number, count in news(incremental(raw, session, epoch, max_bytes=1100)).items()
            if count
        )
        for epoch in range(1, 7)
    ]

    assert sorted(served[:3]) == sorted(served[3:]) == [0, 1, 2]


def test_followers_copy_from_a_leader_that_keeps_no_sessions(tmp_path: Path) -> None:
    slots = {"max.incremental.fetch.session.cache.slots": "0"}
    topic = CreatableTopic(name="t", num_partitions=3, replication_factor=2, assignments=(), configs=())
    with ClusterProcess(tmp_path, 2, slots) as cluster:
        first, _, _ = cluster.bootstrap.partition(",")
        with RawClient(first) as client:
            client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
            metadata = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
        ports = {node.node_id: f"{node.host}:{node.port}" for node in metadata.brokers}
        for partition in metadata.topics[0].partitions:
            with RawClient(ports[partition.leader_id]) as leader:
                for _ in range(2):  # for the second, the follower has said before where it reads
                    request = produce_request("t", partition=partition.partition_index, acks=-1)
                    (answer,) = leader.ask(request, 9).responses[0].partition_responses
                    assert answer.error_code == 0
