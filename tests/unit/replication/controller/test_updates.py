"""What the controller tells a broker: some partitions, or everything."""

import asyncio
from dataclasses import replace

import pytest

from headrace.coordination.znodes import BrokerRegistration
from headrace.protocol.between_brokers.update_metadata import (
    FULL,
    INCREMENTAL,
    TOPIC_IS_GONE,
    UpdateMetadataRequest,
)
from headrace.protocol.ids import TopicPartition
from headrace.replication.controller.model import MAX_REMOVED, ClusterModel, Member, TopicModel
from headrace.replication.controller.updates import VERSIONS, TopicForgotten, Updates
from headrace.replication.election import Partition
from headrace.security.listeners import Endpoint

A, B = bytes([1]) * 16, bytes([2]) * 16


def registration(broker_id: int) -> BrokerRegistration:
    return BrokerRegistration(
        broker_id=broker_id,
        endpoints=(Endpoint("PLAINTEXT", f"::{broker_id}", 9092),),
        timestamp_ms=0,
        rack="r",
    )


def partition(leader: int) -> Partition:
    return Partition(replicas=(1, 2, 3), leader=leader, leader_epoch=4, isr=(1,), elr=(2,), version=7)


def cluster() -> ClusterModel:
    return ClusterModel(
        members={each: Member(broker_id=each, epoch=100 + each) for each in (1, 2)},
        topics={
            "a": TopicModel(
                topic_id=A,
                version=0,
                partitions={0: partition(1), 1: partition(2)},
                configs={"retention.ms": "5"},
            ),
            "b": TopicModel(topic_id=B, version=0, partitions={0: partition(1)}),
        },
    )


def told(
    model: ClusterModel, keys: list[TopicPartition] | None, *, to_broker: int = 2
) -> UpdateMetadataRequest:
    async def compose() -> UpdateMetadataRequest:
        if keys is not None:
            return await updates(model).some(to_broker, [keys])
        (whole,) = [each async for each in updates(model).everything(to_broker)]
        return whole

    return asyncio.run(compose())


def updates(model: ClusterModel, *, partitions_per_part: int = 100) -> Updates:
    composer = Updates(model, controller_id=1, controller_epoch=6, partitions_per_part=partitions_per_part)
    composer.use_brokers({each: registration(each) for each in (1, 2, 3)})
    return composer


def test_everything_is_all_topics_with_their_settings() -> None:
    update = told(cluster(), None)

    assert (update.type, update.controller_id, update.controller_epoch) == (FULL, 1, 6)
    assert [(each.topic_name, len(each.partition_states)) for each in update.topic_states] == [
        ("a", 2),
        ("b", 1),
    ]
    assert [(each.name, each.value) for each in update.topic_states[0].configs] == [("retention.ms", "5")]


def test_some_partitions_are_told_as_they_are_now() -> None:
    update = told(cluster(), [TopicPartition("a", 1)])

    assert update.type == INCREMENTAL
    (topic,) = update.topic_states
    (state,) = topic.partition_states
    assert (topic.topic_id, state.partition_index, state.leader, state.leader_epoch) == (A, 1, 2, 4)
    assert (state.isr, state.eligible_leader_replicas, state.zk_version) == ((1,), (2,), 7)
    assert state.offline_replicas == [3]


def test_a_message_is_for_one_life_of_its_broker() -> None:
    assert told(cluster(), None).broker_epoch == 102
    assert told(cluster(), None, to_broker=3).broker_epoch == -1


def test_brokers_that_are_not_registered_are_not_told_of() -> None:
    model = cluster()
    assert [(each.id, each.broker_epoch, each.rack) for each in told(model, []).live_brokers] == [
        (1, 101, "r"),
        (2, 102, "r"),
    ]

    del model.members[1]
    assert [each.id for each in told(model, []).live_brokers] == [2]


def test_an_address_is_told_without_its_brackets() -> None:
    (endpoint,) = told(cluster(), []).live_brokers[0].endpoints

    assert (endpoint.host, endpoint.port, endpoint.listener) == ("::1", 9092, "PLAINTEXT")


def test_of_a_topic_that_is_gone_that_is_said() -> None:
    model = cluster()
    del model.topics["b"]
    model.removed["b"] = B

    (topic,) = told(model, [TopicPartition("b", 0)]).topic_states

    assert topic.topic_id == B
    assert [each.leader for each in topic.partition_states] == [TOPIC_IS_GONE]


def test_a_topic_that_was_deleted_long_ago_is_only_missing_from_the_whole_state() -> None:
    model = cluster()
    model.remove_topic("b")
    for number in range(MAX_REMOVED):
        name = f"t{number}"
        model.add_topic(name, TopicModel(topic_id=A, version=0, partitions={}))
        model.remove_topic(name)

    with pytest.raises(TopicForgotten):
        told(model, [TopicPartition("b", 0)])
    assert [each.topic_name for each in told(model, None).topic_states] == ["a"]


def test_a_partition_that_is_not_known_is_not_told_of() -> None:
    (topic,) = told(cluster(), [TopicPartition("a", 9)]).topic_states

    assert topic.partition_states == []


# -- requests to many brokers ------------------------------------------------------------------


def test_requests_to_several_brokers_are_encoded_once_and_differ_in_the_broker_epoch() -> None:
    async def story() -> None:
        composer = updates(cluster())
        batch = [TopicPartition("a", 0), TopicPartition("b", 0)]
        first, second = await composer.some(1, [batch]), await composer.some(2, [batch])

        assert first.topic_states is second.topic_states
        one, two = (b"".join(each.encode(VERSIONS[-1])) for each in (first, second))
        assert len(one) == len(two)
        decoded = [UpdateMetadataRequest.decode(each, VERSIONS[-1]) for each in (one, two)]
        assert [each.broker_epoch for each in decoded] == [101, 102]
        plain = UpdateMetadataRequest(
            controller_id=1,
            type=INCREMENTAL,
            controller_epoch=6,
            broker_epoch=102,
            topic_states=list(second.topic_states),
            live_brokers=second.live_brokers,
        )
        assert two == b"".join(plain.encode(VERSIONS[-1]))

    asyncio.run(story())


def test_a_request_is_composed_again_after_a_change_of_one_of_its_topics() -> None:
    async def story() -> None:
        model = cluster()
        composer = updates(model)
        batch = [TopicPartition("a", 0)]
        before = await composer.some(1, [batch])
        model.apply({TopicPartition("b", 0): partition(2)})
        assert (await composer.some(1, [batch])).topic_states is before.topic_states

        model.apply({TopicPartition("a", 0): replace(partition(2), leader_epoch=5)})
        (topic,) = (await composer.some(1, [batch])).topic_states

        assert [(each.leader, each.leader_epoch) for each in topic.partition_states] == [(2, 5)]

    asyncio.run(story())


def test_a_request_is_composed_again_after_a_change_of_brokers() -> None:
    async def story() -> None:
        model = cluster()
        composer = updates(model)
        before = await composer.some(2, [])
        del model.members[1]
        composer.use_brokers({each: registration(each) for each in (1, 2, 3)})
        after = await composer.some(2, [])

        assert [[each.id for each in request.live_brokers] for request in (before, after)] == [[1, 2], [2]]

    asyncio.run(story())


def test_the_whole_state_of_a_large_cluster_is_sent_in_parts() -> None:
    async def story() -> None:
        composer = updates(cluster(), partitions_per_part=2)
        parts = [each async for each in composer.everything(1)]

        assert [[topic.topic_name for topic in each.topic_states] for each in parts] == [["a"], ["b"]]
        assert [(each.type, each.part, each.is_last_part) for each in parts] == [
            (INCREMENTAL, 0, False),
            (INCREMENTAL, 1, True),
        ]

    asyncio.run(story())


def test_a_topic_that_is_deleted_while_parts_are_sent_is_gone_in_its_part() -> None:
    async def story() -> None:
        model = cluster()
        composer = updates(model, partitions_per_part=2)
        parts = []
        async for part in composer.everything(1):
            parts.append(part)
            model.remove_topic("b")

        (topic,) = parts[1].topic_states
        assert (topic.topic_id, [each.leader for each in topic.partition_states]) == (B, [TOPIC_IS_GONE])

    asyncio.run(story())
