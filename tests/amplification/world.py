"""A broker with something in it, for requests that name what exists."""

from amplification.shapes import World
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.index import ApiKey
from wire.every_group_request import GROUP_REQUESTS
from wire.process import BrokerProcess
from wire.raw import RawClient
from wire.requests import create_topic, produce

SETTINGS = {
    "num.partitions": "1",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
}


def make_world(broker: BrokerProcess, *, topics: int = 10, partitions: int = 10) -> World:
    """Some topics of some partitions, a record in each, and a group that has committed offsets."""
    with RawClient(broker.bootstrap) as client:
        made = []
        for number in range(topics):
            name = f"known-{number}"
            made.append((name, create_topic(client, name, partitions=partitions)))
            for partition in range(partitions):
                assert produce(client, name, partition=partition).error_code == 0
        client.ask(FindCoordinatorRequest(key="group"), version=1)
        name, topic_id = made[0]
        client.ask(GROUP_REQUESTS[ApiKey.OFFSET_COMMIT](name, topic_id, 2), 2)
    return World(tuple(made), partitions, "group")
