"""Any cluster of nodes, any of its brokers: where the replicas of drained brokers go."""

from hypothesis import assume, given
from hypothesis import strategies as st

from headrace.client.cluster.drain import drain
from headrace.client.cluster.status import PartitionState
from headrace.protocol.locations import Location, node_of, nodes


@given(st.data())
def test_no_replica_is_left_and_replicas_share_a_node_only_if_they_must(data: st.DataObject) -> None:
    brokers = {
        10 * machine + each: Location(node=f"node-{machine}")
        for machine, size in enumerate(data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=5)))
        for each in range(size)
    }
    drained = set(data.draw(st.lists(st.sampled_from(sorted(brokers)), min_size=1, max_size=4)))
    left = {each: location for each, location in brokers.items() if each not in drained}
    count = data.draw(st.integers(1, 3))
    assume(count <= len(left))
    replicas = st.permutations(sorted(brokers)).map(lambda ids: tuple(ids[:count]))
    partitions = [
        PartitionState(topic="orders", partition=index, leader=chosen[0], replicas=chosen, in_sync=chosen)
        for index, chosen in enumerate(data.draw(st.lists(replicas, max_size=10)))
    ]

    moves = {move.partition: move.replicas for move in drain(drained, partitions, brokers)}

    for partition in partitions:
        after = moves.get(partition.partition, partition.replicas)
        assert drained.isdisjoint(after)
        assert len(set(after)) == count
        for old, new in zip(partition.replicas, after, strict=True):
            assert new == old or old in drained, "other replicas stay where they are"
        stayed = {node_of(each, brokers) for each in partition.replicas if each not in drained}
        moved = sum(each in drained for each in partition.replicas)
        used = {node_of(each, brokers) for each in after}
        assert len(used) == min(len(stayed) + moved, len(nodes(left)))
