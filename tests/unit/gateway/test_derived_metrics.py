"""Figures for dashboards that no broker counts."""

from prometheus_client.core import Metric

from headrace.client.cluster.status import PartitionState
from headrace.client.groups.group import Group, Progress
from headrace.client.wire.requests import Coordinator
from headrace.gateway.metrics.derived import of_followers, of_groups, of_requests
from headrace.protocol.between_brokers.broker_metrics import BrokerMetricsResponse, Family, Sample


def counted(name: str, labels: list[str], of: dict[int, list[Sample]]) -> dict[int, BrokerMetricsResponse]:
    return {
        broker: BrokerMetricsResponse(
            broker_id=broker,
            at_ms=0,
            families=[Family(name=name, kind="gauge", help="", labels=labels, samples=samples)],
        )
        for broker, samples in of.items()
    }


def ends(of: dict[int, dict[int, int]]) -> dict[int, BrokerMetricsResponse]:
    """Of each broker the ends of its replicas of `orders`, by partition."""
    samples = {
        broker: [Sample(labels=["orders", str(index)], value=end) for index, end in found.items()]
        for broker, found in of.items()
    }
    return counted("kafka_log_log_logendoffset", ["topic", "partition"], samples)


def partition(index: int, leader: int | None, *replicas: int) -> PartitionState:
    return PartitionState(topic="orders", partition=index, leader=leader, replicas=replicas, in_sync=replicas)


def group(name: str, coordinator: int, *partitions: tuple[str, int | None, int | None]) -> Group:
    return Group(
        name=name,
        state="Empty",
        type="classic",
        assignor=None,
        coordinator=Coordinator(id=coordinator, host="h", port=1),
        members=(),
        idle_members=0,
        partitions=tuple(
            Progress(topic=topic, partition=index, committed=committed, log_end=None, lag=lag, member_id=None)
            for index, (topic, committed, lag) in enumerate(partitions)
        ),
        total_lag=0,
    )


def read(family: Metric) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


def groups_read(groups: list[Group], answering: dict[int, BrokerMetricsResponse]) -> dict[str, Metric]:
    return {family.name: family for family in of_groups(groups, answering)}


def test_a_broker_is_as_far_behind_as_the_replica_that_lacks_most() -> None:
    found = of_followers(
        [partition(0, 1, 1, 2), partition(1, 1, 1, 2), partition(2, 2, 2, 1)],
        ends({1: {0: 100, 1: 50, 2: 9}, 2: {0: 40, 1: 49, 2: 9}}),
    )
    assert read(found) == {("1", "Replica"): 0, ("2", "Replica"): 60}


def test_nobody_is_behind_a_leader_that_does_not_answer_or_by_less_than_nothing() -> None:
    found = of_followers(
        [partition(0, 3, 3, 1), partition(1, None, 1, 2), partition(2, 1, 1, 2)],
        ends({1: {0: 7, 1: 5, 2: 10}, 2: {1: 9, 2: 12}}),
    )
    assert read(found) == {("1", "Replica"): 0, ("2", "Replica"): 0}


def test_of_a_broker_that_counts_nothing_nothing_is_said() -> None:
    kafka = BrokerMetricsResponse(broker_id=-1, at_ms=0, families=[])
    assert read(of_followers([partition(0, 1, 1, 2)], {1: kafka, 2: kafka})) == {}


def test_groups_are_counted_where_they_are_kept() -> None:
    answering = ends({1: {}, 2: {}})
    groups = [group("a", 1), group("b", 1), group("c", 3)]
    found = groups_read(groups, answering)["kafka_coordinator_group_groupmetadatamanager_numgroups"]
    assert read(found) == {("1",): 2, ("2",): 0}


def test_sums_are_of_a_topic_and_missing_if_a_partition_is_not_known() -> None:
    found = groups_read([group("billing", 1, ("orders", 5, 2), ("orders", 7, None), ("pay", None, None))], {})
    assert read(found["kafka_consumergroup_current_offset"]) == {
        ("billing", "orders", "0"): 5,
        ("billing", "orders", "1"): 7,
    }
    assert read(found["kafka_consumergroup_current_offset_sum"]) == {("billing", "orders"): 12}
    assert read(found["kafka_consumergroup_lag"]) == {("billing", "orders", "0"): 2}
    assert read(found["kafka_consumergroup_lag_sum"]) == {}


def test_requests_have_a_count_and_milliseconds() -> None:
    samples = [
        Sample(labels=["Fetch", "0.001024"], value=3),
        Sample(labels=["Fetch", "+Inf"], value=4),
        Sample(labels=["Fetch", "sum"], value=0.5),
    ]
    found = of_requests(counted("headrace_request_duration_seconds", ["request", "le"], {1: samples}))
    labels = {"broker": "1", "request": "Fetch"}
    assert [(each.name, each.labels, each.value) for each in found.samples] == [
        ("kafka_network_requestmetrics_totaltimems_count", labels, 4),
        ("kafka_network_requestmetrics_totaltimems_sum", labels, 500),
    ]


def test_the_lag_of_a_topic_is_unknown_if_that_of_a_partition_is() -> None:
    """A sum of the other partitions would look as if the group had caught up."""
    groups = [
        group("a", 1, ("orders", 10, 5), ("orders", 10, None), ("payments", 1, 2), ("payments", None, None))
    ]
    found = groups_read(groups, ends({1: {}}))
    assert read(found["kafka_consumergroup_lag_sum"]) == {("a", "payments"): 2}
    assert read(found["kafka_consumergroup_current_offset_sum"]) == {
        ("a", "orders"): 20,
        ("a", "payments"): 1,
    }
