"""Any brokers in any racks and nodes: where `spread` puts replicas."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headrace.broker.slices import at_once
from headrace.protocol.locations import Location, Locations, node_of, nodes
from headrace.replication.controller.placement import spread


@st.composite
def clusters(draw: st.DrawFn) -> dict[int, Location]:
    """Brokers in nodes of different sizes, each node in one rack; a broker may have no node or rack."""
    brokers: dict[int, Location] = {}
    for number in range(draw(st.integers(1, 6))):
        rack = draw(st.sampled_from([None, "a", "b", "c"]))
        name = draw(st.sampled_from([None, f"node-{number}"]))
        for _ in range(draw(st.integers(1, 4)) if name else 1):
            brokers[len(brokers) + 1] = Location(rack, name)
    ids = draw(st.permutations(sorted(brokers)))  # the ids of a node need not be neighbours
    return dict(zip(ids, brokers.values(), strict=True))


@given(clusters(), st.integers(1, 8), st.integers(1, 60), st.integers(0, 100))
def test_replicas_are_in_as_many_racks_and_nodes_as_there_are(
    brokers: Locations, replicas: int, partitions: int, start: int
) -> None:
    replicas = min(replicas, len(brokers))
    racks = {location.rack for location in brokers.values()}

    for chosen in at_once(spread(partitions, replicas, brokers, start=start)).values():
        assert len(set(chosen)) == replicas
        assert len({brokers[each].rack for each in chosen}) == min(replicas, len(racks))
        assert len({node_of(each, brokers) for each in chosen}) == min(replicas, len(nodes(brokers)))


@given(clusters(), st.integers(1, 8), st.integers(1, 60), st.integers(0, 100))
def test_every_broker_leads_as_many_partitions_as_any_other_give_or_take_one(
    brokers: Locations, replicas: int, partitions: int, start: int
) -> None:
    placed = at_once(spread(partitions, min(replicas, len(brokers)), brokers, start=start))

    leads = Counter(chosen[0] for chosen in placed.values())
    assert max(leads.values()) - min(leads[each] for each in brokers) <= 1


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 3), st.integers(0, 100))
def test_nodes_of_the_same_size_get_the_same_number_of_followers(
    machines: int, size: int, replicas: int, start: int
) -> None:
    brokers = {
        100 * machine + each: Location(node=f"node-{machine}")
        for machine in range(machines)
        for each in range(size)
    }
    placed = at_once(spread(2 * len(brokers), min(replicas, machines), brokers, start=start))

    holds = Counter(each for chosen in placed.values() for each in chosen)
    assert set(holds.values()) == {2 * min(replicas, machines)}
