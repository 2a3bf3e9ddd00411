"""What `headrace cluster` asks, asked of Apache Kafka: the client speaks Kafka's words, not ours."""

import pytest

from compat.kafka_tools.server import KafkaServer
from headrace.client.cluster.cluster import Cluster
from headrace.client.cluster.moves import Move
from headrace.client.errors import ClientError
from headrace.protocol.ids import TopicPartition


def test_kafka_answers_all_that_is_asked_of_a_cluster(kafka_server: KafkaServer) -> None:
    kafka_server.create_topic("orders")
    with Cluster(kafka_server.bootstrap) as cluster:
        _ask(cluster)


def _ask(cluster: Cluster) -> None:
    status = cluster.status()
    (broker,) = status.brokers
    assert (broker.id, broker.state, broker.controller, broker.pid) == (1, "up", True, None)
    assert status.is_healthy
    assert [each.replicas for each in cluster.partitions_of("orders")] == [(1,)]

    stays = Move(topic="orders", partition=0, replicas=(1,))
    assert cluster.reassign([stays]) == {TopicPartition("orders", 0): (1,)}
    assert list(cluster.wait([stays])) == [0]
    assert cluster.reassignments() == []
    assert cluster.cancel() == []

    (election,) = cluster.elect([TopicPartition("orders", 0)])
    assert (election.leader, election.needed, election.refused) == (1, False, None)
    (unclean,) = cluster.elect([TopicPartition("orders", 0)], unclean=True)
    assert (unclean.needed, unclean.refused) == (False, None)
    with pytest.raises(ClientError, match="besides broker 1 no broker is alive"):
        cluster.plan_drain([1])
    with pytest.raises(ClientError, match="there is no broker 9, only 1"):
        cluster.reassign([Move(topic="orders", partition=0, replicas=(9,))])
    with pytest.raises(ClientError, match="orders-0 is not being moved"):
        cluster.cancel([TopicPartition("orders", 0)])
