"""Sizes of replicas, as DescribeLogDirs tells them."""

from headrace.client.cluster.log_dirs import size_of
from headrace.protocol.ids import TopicPartition

ORDERS = TopicPartition("orders", 0)


def test_the_size_of_a_replica_is_known_also_for_broker_0() -> None:
    taken = {(0, ORDERS): 5, (1, ORDERS): 7}

    assert size_of(taken, 0, ORDERS) == 5
    assert size_of(taken, 2, ORDERS) is None
    assert size_of(taken, None, ORDERS) is None
