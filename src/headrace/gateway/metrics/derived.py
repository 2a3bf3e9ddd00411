"""Metrics that no broker counts: they are derived from metadata, groups, pipelines and brokers' own metrics.

Those of partitions, groups and requests have the names of kafka_exporter and Kafka's JMX exporter. Pure.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final

from prometheus_client.core import Metric, SummaryMetricFamily

from headrace.client.cluster.log_dirs import LogDir
from headrace.client.cluster.status import PartitionState
from headrace.client.groups.group import Group
from headrace.gateway.metrics.counters import Counted
from headrace.gateway.metrics.exposition import SUM, gauge
from headrace.pipeline.progress import Figures, Progress
from headrace.pipeline.status import state_of
from headrace.protocol.between_brokers.broker_metrics import Sample
from headrace.protocol.schema.metadata import MetadataResponse

_PARTITION: Final = ("topic", "partition")
_GROUP_PARTITION: Final = ("consumergroup", "topic", "partition")
_PARTITION_GAUGES: Final[dict[str, tuple[str, Callable[[PartitionState], float]]]] = {
    "leader": (
        "Id of the leader, or -1.",
        lambda partition: -1 if partition.leader is None else partition.leader,
    ),
    "replicas": ("Replicas of the partition.", lambda partition: len(partition.replicas)),
    "in_sync_replica": ("Replicas in the ISR.", lambda partition: len(partition.in_sync)),
    "leader_is_preferred": (
        "Whether the preferred replica leads the partition.",
        lambda partition: partition.leader is not None and partition.leader == partition.replicas[0],
    ),
    "under_replicated_partition": (
        "Whether a replica is out of sync.",
        lambda partition: bool(partition.lacks),
    ),
}


def of_requests(counted: Counted) -> Metric:
    """Return the number of requests and their total time in milliseconds, by broker and API."""
    values: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for broker, sample in _samples(counted, "headrace_request_duration_seconds"):
        values[str(broker), sample.labels[0]][sample.labels[1]] = sample.value
    summary = SummaryMetricFamily(
        "kafka_network_requestmetrics_totaltimems",
        "Requests, and milliseconds from their arrival to their response.",
        labels=("broker", "request"),
    )
    for labels, by_bound in values.items():
        summary.add_metric(labels, int(by_bound.get("+Inf", 0)), by_bound.get(SUM, 0) * 1000)
    return summary


def of_disks(log_dirs: Mapping[int, Iterable[LogDir]]) -> Iterator[Metric]:
    """Return the size and the free space of the disks that log directories are on."""
    for name, help_, value in (
        ("total", "Size of the disk of a log directory.", attrgetter("total_bytes")),
        ("usable", "Free space on the disk of a log directory.", attrgetter("usable_bytes")),
    ):
        samples = [
            ((str(broker), directory.path), value(directory))
            for broker, directories in sorted(log_dirs.items())
            for directory in directories
            if value(directory) is not None
        ]
        yield gauge(f"headrace_log_dir_{name}_bytes", help_, ("broker", "log_dir"), samples)


def of_brokers(
    metadata: MetadataResponse, partitions: Iterable[PartitionState], counted: Counted
) -> Iterator[Metric]:
    """Return which brokers are registered, where, and which of them answer."""
    yield gauge("kafka_brokers", "Brokers that are alive.", (), [((), len(metadata.brokers))])
    addresses = [((str(broker.node_id), f"{broker.host}:{broker.port}"), 1) for broker in metadata.brokers]
    yield gauge("kafka_broker_info", "Address of a broker.", ("id", "address"), addresses)
    known = [((str(broker),), broker in counted) for broker in known_brokers(metadata, partitions)]
    yield gauge("headrace_broker_up", "Whether the broker has answered.", ("broker",), known)


def known_brokers(metadata: MetadataResponse, partitions: Iterable[PartitionState]) -> list[int]:
    """Return the ids of brokers that are alive, and of dead ones that still have replicas."""
    alive = {broker.node_id for broker in metadata.brokers}
    return sorted(alive | {replica for partition in partitions for replica in partition.replicas})


def of_partitions(partitions: list[PartitionState], counted: Counted) -> Iterator[Metric]:
    """Return leaders, replicas and offsets of every partition."""
    counts = Counter(partition.topic for partition in partitions)
    samples = [((topic,), count) for topic, count in counts.items()]
    yield gauge("kafka_topic_partitions", "Partitions of a topic.", ("topic",), samples)
    for name, (help_, value) in _PARTITION_GAUGES.items():
        values = [((partition.topic, str(partition.partition)), value(partition)) for partition in partitions]
        yield gauge(f"kafka_topic_partition_{name}", help_, _PARTITION, values)
    for name, help_, source in (
        ("current_offset", "Log end offset of the leader.", "kafka_log_log_logendoffset"),
        ("oldest_offset", "Log start offset of the leader.", "kafka_log_log_logstartoffset"),
    ):
        offsets = _offsets(counted, source)
        led = (
            (partition, offsets.get((partition.leader, partition.topic, str(partition.partition))))
            for partition in partitions
        )
        known = [((each.topic, str(each.partition)), offset) for each, offset in led if offset is not None]
        yield gauge(f"kafka_topic_partition_{name}", help_, _PARTITION, known)


def of_followers(partitions: Iterable[PartitionState], counted: Counted) -> Metric:
    """Return for each broker the most records that one of its replicas is behind its leader.

    Brokers are read at the same time but answer one after the other, so followers can seem to be behind by
    what was written in between, or ahead, which counts as 0.
    """
    ends = _offsets(counted, "kafka_log_log_logendoffset")
    lags = {broker: 0.0 for broker, answer in counted.items() if answer.families}  # Apache Kafka has none
    for partition in partitions:
        leader_end = ends.get((partition.leader, partition.topic, str(partition.partition)))
        for broker in partition.replicas:
            end = ends.get((broker, partition.topic, str(partition.partition)))
            if leader_end is not None and end is not None:
                lags[broker] = max(lags[broker], leader_end - end)
    return gauge(
        "kafka_server_replicafetchermanager_maxlag",
        "Most records that a replica on the broker is behind its leader.",
        ("broker", "clientId"),
        [((str(broker), "Replica"), lag) for broker, lag in sorted(lags.items())],
    )


def of_groups(groups: Iterable[Group], counted: Counted) -> Iterator[Metric]:
    """Return members, offsets and lag of every group, and the number of groups of each coordinator."""
    members = [((each.name,), len(each.members)) for each in groups]
    yield gauge("kafka_consumergroup_members", "Members of a group.", ("consumergroup",), members)
    for name, help_, value in (
        ("current_offset", "Committed offset of a group", attrgetter("committed")),
        ("lag", "Records after the committed offset of a group", attrgetter("lag")),
    ):
        samples: list[tuple[tuple[str, str, str], int]] = []
        sums: dict[tuple[str, str], int] = defaultdict(int)
        unknown: set[tuple[str, str]] = set()  # such as the lag of a partition without a leader
        for group in groups:
            for partition in group.partitions:
                if (known := value(partition)) is not None:
                    samples.append(((group.name, partition.topic, str(partition.partition)), known))
                    sums[group.name, partition.topic] += known
                elif partition.committed is not None:
                    unknown.add((group.name, partition.topic))
        yield gauge(f"kafka_consumergroup_{name}", f"{help_}.", _GROUP_PARTITION, samples)
        of_topic = f"{help_}, all partitions of a topic together."
        whole = [(labels, total) for labels, total in sums.items() if labels not in unknown]
        yield gauge(f"kafka_consumergroup_{name}_sum", of_topic, ("consumergroup", "topic"), whole)
    coordinated = dict.fromkeys(counted, 0)
    for group in groups:
        if group.coordinator.id in coordinated:
            coordinated[group.coordinator.id] += 1
    yield gauge(
        "kafka_coordinator_group_groupmetadatamanager_numgroups",
        "Groups that the broker coordinates.",
        ("broker",),
        [((str(broker),), count) for broker, count in sorted(coordinated.items())],
    )


def _offsets(counted: Counted, name: str) -> dict[tuple[int | None, str, str], float]:
    """Return what brokers have counted of each partition, by broker, topic and partition."""
    return {
        (broker, sample.labels[0], sample.labels[1]): sample.value
        for broker, sample in _samples(counted, name)
    }


def _samples(counted: Counted, name: str) -> Iterator[tuple[int, Sample]]:
    for broker, answer in counted.items():
        for family in answer.families:
            if family.name == name:
                yield from ((broker, sample) for sample in family.samples)


_STATES: Final = ("running", "failed", "ended", "silent")
_QUERY: Final = ("pipeline", "query")
_BATCH_GAUGES: Final[dict[str, tuple[str, Callable[[Progress], float]]]] = {
    "lag": ("Records that the query has still to read after its last batch.", lambda batch: batch.lag),
    "batch_duration_seconds": ("Duration of the last batch.", lambda batch: batch.took_ms / 1000),
    "state_rows": ("Rows in the state store of the query.", lambda batch: batch.state_rows),
    "state_bytes": ("Memory of the state store of the query.", lambda batch: batch.state_bytes),
}
_RATE_GAUGES: Final[dict[str, tuple[str, Callable[[Progress], float]]]] = {
    "rows_per_second": ("Rows that the query reads.", lambda batch: batch.rows_per_s),
    "written_rows_per_second": ("Rows that the query writes.", lambda batch: batch.written_per_s),
}


def of_pipelines(pipelines: Mapping[str, Sequence[Figures]], now_ms: int) -> Iterator[Metric]:
    """Return state and figures of every query; what is not known has no sample."""
    queries = [((name, figure.query), figure) for name, figures in pipelines.items() for figure in figures]
    states = {labels: state_of([each], now_ms) for labels, each in queries}
    yield gauge(
        "headrace_pipeline_query_state",
        "1 for the state that the query is in.",
        (*_QUERY, "state"),
        [((*labels, state), states[labels] == state) for labels, _ in queries for state in _STATES],
    )
    yield gauge(
        "headrace_pipeline_query_last_report_timestamp_seconds",
        "When the query has reported last.",
        _QUERY,
        [(labels, each.at_ms / 1000) for labels, each in queries],
    )
    yield gauge(
        "headrace_pipeline_query_restarts",
        "Restarts of the query since the pipeline was started, as far back as the last 20,000 reports.",
        _QUERY,
        [(labels, each.restarts) for labels, each in queries],
    )
    yield gauge(
        "headrace_pipeline_query_broken_rows",
        "Rows that broke an expectation since the query was started, in the last 20,000 reports.",
        (*_QUERY, "expectation"),
        [((*labels, name), rows) for labels, each in queries for name, rows in each.broken.items()],
    )
    batches = [(labels, each, each.last) for labels, each in queries if each.last is not None]
    yield gauge(
        "headrace_pipeline_query_newer_rows",
        "Records of a newer schema than the columns since the query was started, in the last 20,000 reports.",
        _QUERY,
        [(labels, each.newer_rows) for labels, each, _ in batches],
    )
    for name, (help_, value) in _BATCH_GAUGES.items():
        samples = [(labels, value(batch)) for labels, _, batch in batches]
        yield gauge(f"headrace_pipeline_query_{name}", help_, _QUERY, samples)
    for name, (help_, value) in _RATE_GAUGES.items():
        samples = [
            (labels, value(batch) if each.is_moving and states[labels] == "running" else 0)
            for labels, each, batch in batches
            if states[labels] != "silent"
        ]
        yield gauge(f"headrace_pipeline_query_{name}", help_, _QUERY, samples)
