"""What a failure costs the controller, ZooKeeper and the other brokers grows with what has failed.

`make scale ARGS=--simulated` measures the same with 300 brokers and 200,000 partitions.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from capacity.cluster import REPLICAS, Broker, SimulatedCluster, Size
from headrace.coordination.session import NotConnected
from headrace.replication.controller.channel import PARTITIONS_PER_UPDATE
from headrace.replication.controller.transactions import MAX_OPERATIONS

SIZE = Size(brokers=12, partitions=2000, per_topic=20)
Story = Callable[[SimulatedCluster, Broker], Awaitable[None]]


def run(story: Story) -> None:
    """Run a story with a cluster and its controller, after the controller has begun."""

    async def play() -> None:
        cluster = SimulatedCluster(SIZE)
        controller = cluster.broker(1)
        try:
            await cluster.join(controller)
            cluster.take_traffic()
            await story(cluster, controller)
        finally:
            cluster.stop()

    asyncio.run(play())


def test_a_lost_broker_costs_one_write_for_each_of_its_partitions_and_no_reads() -> None:
    async def story(cluster: SimulatedCluster, broker: Broker) -> None:
        affected = len(broker.controller.model.with_replica_on(12))
        before = broker.session.counts.copy()

        await cluster.lose(broker, [12])

        counts = broker.session.counts.since(before)
        assert 0 < affected < SIZE.partitions / 2
        assert counts.operations == affected
        assert counts.transactions <= -(-affected // MAX_OPERATIONS) + 1
        assert (counts.read_requests, counts.znodes_read) == (1, 0)  # the names of the registered brokers
        assert all(each.leader != 12 for _, each in broker.controller.model.items())

    run(story)


def test_each_broker_is_sent_each_changed_partition_once_in_few_messages() -> None:
    async def story(cluster: SimulatedCluster, broker: Broker) -> None:
        affected = len(broker.controller.model.with_replica_on(12))

        await cluster.lose(broker, [12])

        others = [cluster.traffic[each] for each in range(1, 12)]
        assert {each.states for each in others} == {affected}
        assert max(each.updates for each in others) <= -(-affected // PARTITIONS_PER_UPDATE) + 2
        assert cluster.traffic[12].updates == 0

    run(story)


def test_a_lost_rack_costs_one_write_for_each_partition_and_leaves_none_without_a_leader() -> None:
    async def story(cluster: SimulatedCluster, broker: Broker) -> None:
        rack = SIZE.in_rack("c")
        before = broker.session.counts.copy()

        await cluster.lose(broker, rack)

        counts = broker.session.counts.since(before)
        assert counts.operations == SIZE.partitions  # each has one replica in each rack
        assert counts.transactions <= SIZE.partitions / MAX_OPERATIONS * 1.5
        assert (counts.read_requests, counts.znodes_read) == (1, 0)
        left = set(range(1, SIZE.brokers + 1)) - set(rack)
        assert {each.leader for _, each in broker.controller.model.items()} == left
        assert {len(each.isr) for _, each in broker.controller.model.items()} == {REPLICAS - 1}
        assert {cluster.traffic[each].states for each in left} == {SIZE.partitions}

    run(story)


def test_the_next_controller_reads_everything_once_and_writes_nothing_but_its_election() -> None:
    async def story(cluster: SimulatedCluster, broker: Broker) -> None:
        cluster.resign(broker)
        second = cluster.broker(2)
        await cluster.join(second)

        counts = second.session.counts
        znodes = SIZE.partitions + 2 * SIZE.topics  # states, assignments and configs
        assert znodes <= counts.znodes_read <= znodes + 3 * SIZE.brokers + 10
        assert counts.read_requests <= znodes / 200 + 3 * SIZE.brokers + 20
        assert counts.operations == 2
        assert {each.states for each in cluster.traffic.values()} == {SIZE.partitions}
        assert {each.updates for each in cluster.traffic.values()} == {1}

    run(story)


def test_another_broker_reads_the_names_of_brokers_after_a_failure_and_no_registrations() -> None:
    async def story(cluster: SimulatedCluster, broker: Broker) -> None:
        other = cluster.broker(2)
        await cluster.join(other)
        before = other.session.counts.copy()

        await cluster.lose(broker, [12])
        while 12 in other.view.registrations:  # noqa: ASYNC110  there is no event
            await asyncio.sleep(0)

        counts = other.session.counts.since(before)
        assert (counts.read_requests, counts.znodes_read, counts.transactions) == (1, 0, 0)

    run(story)


def test_a_new_topic_is_sent_to_every_broker_in_one_message() -> None:
    async def story(cluster: SimulatedCluster, broker: Broker) -> None:
        before = broker.session.counts.copy()
        topic = cluster.new_topic("new", partitions=300)
        await broker.controller.create_topic(topic, {})
        await broker.controller.propagated(3600.0)

        counts = broker.session.counts.since(before)
        assert counts.operations == 3 + 2 * 300  # config, topic, directory; a directory and a state of each
        assert counts.znodes_read == 1  # whether an earlier topic of this name has left a config
        assert {each.states for each in cluster.traffic.values()} == {300}
        assert max(each.updates for each in cluster.traffic.values()) <= 2

    run(story)


def test_a_broker_that_returns_after_a_failed_write_leads_only_in_new_leader_epochs() -> None:
    """It was lost while ZooKeeper could not be written to, and the model was read again meanwhile."""

    async def story(_cluster: SimulatedCluster, broker: Broker) -> None:
        controller = broker.controller
        registrations, epochs = broker.view.brokers
        led = controller.model.led_by(12)
        left = {each: found for each, found in registrations.items() if each != 12}
        broker.session.refuses_writes = True
        with pytest.raises(NotConnected):
            await controller.brokers_changed(left, {each: epochs[each] for each in left})
        broker.session.refuses_writes = False
        await controller.change(lambda _model: {})

        await controller.brokers_changed(registrations, {**epochs, 12: epochs[12] + 1000})

        assert led
        assert all(controller.model.find(key).leader_epoch == 1 for key in led)

    run(story)
