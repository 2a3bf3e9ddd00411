"""What dashboards look for besides, made of what is known anyway: no broker counts any of it. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from headrace.client.cluster.status import PartitionState
from headrace.client.groups.group import Group
from headrace.http.metrics.exposition import SUM, gauge
from headrace.protocol.broker_metrics import COUNTER, BrokerMetricsResponse, Family, Sample
from headrace.protocol.schema.metadata import MetadataResponse

Counted = Mapping[int, BrokerMetricsResponse]

_TOOK = "headrace_request_duration_seconds"
_END = "kafka_log_log_logendoffset"
_TOTAL = "kafka_network_requestmetrics_totaltimems"
_OF_GROUP = ("consumergroup", "topic")


def of_requests(counted: Counted) -> Iterator[Family]:
    """How many requests there were and what they took together, in milliseconds: rates make a mean of it."""
    samples = [
        (str(broker), sample.labels[0], sample.labels[1], sample.value)
        for broker, sample in _samples(counted, _TOOK)
    ]
    for name, help_, bound, scale in (
        ("count", "Requests that were answered.", "+Inf", 1),
        ("sum", "Milliseconds that they took together, waiting included.", SUM, 1000),
    ):
        yield Family(
            name=f"{_TOTAL}_{name}",
            kind=COUNTER,
            help=help_,
            labels=("broker", "request"),
            samples=[
                Sample(labels=(broker, api), value=value * scale)
                for broker, api, le, value in samples
                if le == bound
            ],
        )


def of_brokers(found: MetadataResponse) -> Family:
    """Where each broker is."""
    return gauge(
        "kafka_broker_info",
        "Where a broker is.",
        ("id", "address"),
        [((str(each.node_id), f"{each.host}:{each.port}"), 1) for each in found.brokers],
    )


def of_followers(partitions: Iterable[PartitionState], counted: Counted) -> Family:
    """How far each broker's replicas are behind their leaders, at most.

    Brokers are asked at once, but answer when they do: of what is written in between, followers seem to lack
    some. One that is ahead by that lacks nothing.
    """
    ends = {(broker, *sample.labels): sample.value for broker, sample in _samples(counted, _END)}
    most = {broker: 0.0 for broker, answer in counted.items() if answer.families}  # Kafka's tell nothing
    for each in partitions:
        led = ends.get((each.leader, each.topic, str(each.partition)))
        for broker in each.replicas:
            has = ends.get((broker, each.topic, str(each.partition)))
            if led is not None and has is not None:
                most[broker] = max(most[broker], led - has)
    return gauge(
        "kafka_server_replicafetchermanager_maxlag",
        "Records that a replica here lacks, at most.",
        ("broker", "clientId"),
        [((str(broker), "Replica"), lag) for broker, lag in sorted(most.items())],
    )


def of_coordinators(groups: Iterable[Group], counted: Counted) -> Family:
    """How many groups each broker keeps, of those that answer."""
    kept = dict.fromkeys(counted, 0)
    for each in groups:
        if each.coordinator.id in kept:
            kept[each.coordinator.id] += 1
    return gauge(
        "kafka_coordinator_group_groupmetadatamanager_numgroups",
        "Groups that are kept here.",
        ("broker",),
        [((str(broker),), count) for broker, count in sorted(kept.items())],
    )


def sums(groups: Iterable[Group]) -> Iterator[Family]:
    """Offsets and lag of each group, topic by topic."""
    offsets: dict[tuple[str, str], int] = defaultdict(int)
    lags: dict[tuple[str, str], int] = defaultdict(int)
    for group in groups:
        for each in group.partitions:
            if each.committed is not None:
                offsets[group.name, each.topic] += each.committed
            if each.lag is not None:
                lags[group.name, each.topic] += each.lag
    for name, help_, found in (
        ("current_offset", "How far a group is in all partitions of a topic together.", offsets),
        ("lag", "Records of a topic that a group has not read yet.", lags),
    ):
        yield gauge(f"kafka_consumergroup_{name}_sum", help_, _OF_GROUP, found.items())


def _samples(counted: Counted, name: str) -> Iterator[tuple[int, Sample]]:
    for broker, answer in counted.items():
        for family in answer.families:
            if family.name == name:
                yield from ((broker, sample) for sample in family.samples)
