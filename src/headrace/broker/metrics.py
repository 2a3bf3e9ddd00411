"""The metrics of a broker, under the names that dashboards for Kafka use.

The names are those that Prometheus' JMX exporter derives from Kafka's.
"""

import os
import resource
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Final

from headrace import __version__
from headrace.broker.meters import TopicMeter
from headrace.broker.services import BrokerServices
from headrace.protocol.api import request_class
from headrace.protocol.between_brokers import broker_metrics
from headrace.protocol.between_brokers.broker_metrics import COUNTER, GAUGE, HISTOGRAM, Family, counter, gauge
from headrace.storage.log import Log

_TOPICS: Final[dict[str, tuple[str, Callable[[TopicMeter], int]]]] = {
    "messagesin": ("Records appended by producers.", lambda meter: meter.messages_in),
    "bytesin": ("Bytes appended by producers.", lambda meter: meter.bytes_in),
    "bytesout": ("Bytes fetched by consumers.", lambda meter: meter.bytes_out),
    "replicationbytesin": ("Bytes fetched from leaders.", lambda meter: meter.replicated_in),
    "replicationbytesout": ("Bytes fetched by followers.", lambda meter: meter.replicated_out),
    "totalproducerequests": (
        "Batches sent by producers.",
        lambda meter: meter.produces + meter.failed_produces,
    ),
    "failedproducerequests": ("Batches that were refused.", lambda meter: meter.failed_produces),
    "totalfetchrequests": (
        "Partitions with data or an error in Fetch responses.",
        lambda meter: meter.fetches,
    ),
    "failedfetchrequests": (
        "Partitions with an error in Fetch responses.",
        lambda meter: meter.failed_fetches,
    ),
}
_BOUNDS: Final = range(5, 27)  # of the histogram: 2^5 us to 2^26 us (about a minute)
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def _family(
    name: str, kind: str, help_: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], float]]
) -> Family:
    """Return a family with labels, from pairs of the labels of a sample and its value."""
    samples = [broker_metrics.Sample(labels=of_sample, value=value) for of_sample, value in values]
    return Family(name=name, kind=kind, help=help_, labels=labels, samples=samples)


def families(broker: BrokerServices, prefixes: Sequence[str] = ()) -> Iterator[Family]:
    """Yield the current metrics; with `prefixes`, only those whose names begin with one of them."""
    selected = tuple(prefixes)
    for group, build in _GROUPS.items():
        if not selected or any(each.startswith(group) or group.startswith(each) for each in selected):
            yield from (
                each for each in build(broker, selected) if not selected or each.name.startswith(selected)
            )


def _of_topics(broker: BrokerServices, prefixes: tuple[str, ...]) -> Iterator[Family]:
    """Yield the counters of each topic, and their total with an empty topic label, as in Kafka."""
    meters = broker.meters
    for short, (help_, read) in _TOPICS.items():
        name = f"kafka_server_brokertopicmetrics_{short}_total"
        if prefixes and not name.startswith(prefixes):
            continue
        of_topics = {topic: read(meter) for topic, meter in meters.topics.items()}
        total = sum(of_topics.values()) + read(meters.elsewhere)
        values = [(("",), total), *(((topic,), value) for topic, value in of_topics.items())]
        yield _family(name, COUNTER, help_, ("topic",), values)


def _of_replicas(broker: BrokerServices, _prefixes: tuple[str, ...]) -> Iterator[Family]:
    partitions = broker.partitions.values()
    led = [partition for partition in partitions if partition.leadership is not None]
    manager = "kafka_server_replicamanager_"
    meters = broker.meters.topics.values()
    yield gauge(f"{manager}partitioncount", "Partitions with a replica on this broker.", len(partitions))
    yield gauge(f"{manager}leadercount", "Partitions that this broker leads.", len(led))
    yield gauge(
        f"{manager}underreplicatedpartitions",
        "Partitions led by this broker whose ISR is smaller than the replica set.",
        sum(len(each.isr) < len(each.replicas) for each in led),
    )
    yield gauge(
        f"{manager}underminisrpartitioncount",
        "Partitions led by this broker whose ISR is smaller than min.insync.replicas.",
        sum(len(each.isr) < each.min_insync_replicas for each in led),
    )
    yield gauge(
        f"{manager}offlinereplicacount",
        "Replicas on this broker that are offline after a disk failure.",
        len(broker.logs.failed) + sum(partition.log.offline is not None for partition in partitions),
    )
    yield counter(
        f"{manager}isrshrinks_total",
        "How often a replica was removed from an ISR.",
        sum(meter.isr_shrinks for meter in meters),
    )
    yield counter(
        f"{manager}isrexpands_total",
        "How often a replica was added to an ISR.",
        sum(meter.isr_expands for meter in meters),
    )


def _of_damage(broker: BrokerServices, _prefixes: tuple[str, ...]) -> Iterator[Family]:
    damaged = {id_: each.log.damaged for id_, each in broker.partitions.items() if each.log.damaged}
    yield gauge(
        "headrace_damaged_segments",
        "Closed segments on this broker with records that cannot be read.",
        sum(map(len, damaged.values())),
    )
    yield _family(
        "headrace_damaged_offsets",
        GAUGE,
        "Offsets of a partition whose records this broker cannot read.",
        ("topic", "partition"),
        (
            (
                (id_.topic, str(id_.partition)),
                sum(damage.end_offset - damage.from_offset for damage in damages.values()),
            )
            for id_, damages in damaged.items()
        ),
    )


def _of_logs(broker: BrokerServices, _prefixes: tuple[str, ...]) -> Iterator[Family]:
    logs = {(id_.topic, str(id_.partition)): partition.log for id_, partition in broker.partitions.items()}
    gauges: dict[str, tuple[str, Callable[[Log], int]]] = {
        "size": ("Bytes on disk.", lambda log: log.size),
        "numlogsegments": ("Segments.", lambda log: len(log.segments)),
        "logstartoffset": ("The log start offset.", lambda log: log.log_start_offset),
        "logendoffset": ("The log end offset.", lambda log: log.log_end_offset),
    }
    for name, (help_, read) in gauges.items():
        values = ((labels, read(log)) for labels, log in logs.items())
        yield _family(f"kafka_log_log_{name}", GAUGE, help_, ("topic", "partition"), values)


def _of_requests(broker: BrokerServices, _prefixes: tuple[str, ...]) -> Iterator[Family]:
    meters = {
        request_class(key).__name__.removesuffix("Request"): meter
        for key, meter in sorted(broker.meters.requests.items())
    }
    yield _family(
        "kafka_network_requestmetrics_requests_total",
        COUNTER,
        "Answered requests.",
        ("request",),
        (((name,), meter.count) for name, meter in meters.items()),
    )
    yield _family(
        "headrace_request_duration_seconds",
        HISTOGRAM,
        "The time from the arrival of a request to its response, including waits in a purgatory.",
        ("request", "le"),
        (
            ((name, le), value)
            for name, meter in meters.items()
            for le, value in (
                # The number of requests that took less than 2^n microseconds.
                *(
                    (f"{2**n / 1e6:.6f}", below)
                    for n, below in enumerate(accumulate(meter.buckets))
                    if n in _BOUNDS
                ),
                ("+Inf", meter.count),
                ("sum", meter.seconds),
            )
        ),
    )
    yield gauge(
        "kafka_server_socket_server_metrics_connection_count", "Open connections.", len(broker.connections)
    )
    yield counter(
        "kafka_server_socket_server_metrics_failed_authentication_total",
        "Clients that failed to authenticate by SASL.",
        broker.meters.failed_authentications,
    )
    yield counter(
        "kafka_server_authorizer_metrics_authorization_denied_total",
        "Requests, or resources in requests, that were denied for lack of a permission.",
        broker.audit.total,
    )
    yield gauge(
        "kafka_server_authorizer_metrics_acls_total_count",
        "ACLs in force.",
        0 if broker.acls is None else len(broker.acls.index),
    )


def _of_quotas(broker: BrokerServices, _prefixes: tuple[str, ...]) -> Iterator[Family]:
    """Yield how often, and for how long, clients were throttled; client ids would be too many labels."""
    meters = {key.value: meter for key, meter in broker.quotas.meters.items()}
    yield _family(
        "headrace_quota_throttled_total",
        COUNTER,
        "Requests beyond a quota, and refused connections of addresses beyond theirs.",
        ("quota",),
        (((key,), meter.throttled) for key, meter in meters.items()),
    )
    yield _family(
        "headrace_quota_throttle_time_seconds_total",
        COUNTER,
        "The sum of their throttle times.",
        ("quota",),
        (((key,), meter.throttled_ms / 1000) for key, meter in meters.items()),
    )
    yield gauge(
        "headrace_quota_muted_connections", "Connections that are throttled now.", broker.quotas.muted
    )


def _of_controller(broker: BrokerServices, _prefixes: tuple[str, ...]) -> Iterator[Family]:
    controller = broker.controller
    name = "kafka_controller_kafkacontroller_"
    yield gauge(
        f"{name}activecontrollercount", "Whether this broker is the controller.", controller is not None
    )
    if controller is None:
        return
    topics = broker.image.topics.values()
    states = [state for topic in topics for state in topic.states.values()]
    yield gauge(f"{name}globaltopiccount", "Topics of the cluster.", len(topics))
    yield gauge(f"{name}globalpartitioncount", "Partitions of the cluster.", len(states))
    yield gauge(
        f"{name}offlinepartitionscount",
        "Partitions without a leader.",
        sum(each.leader < 0 for each in states),
    )


def _of_process(broker: BrokerServices, _prefixes: tuple[str, ...]) -> Iterator[Family]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield counter("process_cpu_seconds_total", "CPU time.", used.ru_utime + used.ru_stime)
    with suppress(OSError):  # only Linux has it
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
        yield gauge("process_resident_memory_bytes", "Resident memory.", resident)
    yield gauge("process_open_fds", "Open files and sockets.", len(os.listdir("/dev/fd")))  # noqa: PTH208
    yield gauge(
        "process_start_time_seconds", "Start time of the broker, in seconds since 1970.", broker.started_s
    )
    version = [((__version__,), 1)]
    yield _family("headrace_build_info", GAUGE, "The version of the broker.", ("version",), version)


def _of_others(broker: BrokerServices, prefixes: tuple[str, ...]) -> Iterator[Family]:
    yield from _of_requests(broker, prefixes)
    yield from _of_process(broker, prefixes)
    for coordinator in broker.coordinators:
        yield from coordinator.metrics()


_GROUPS: Final[dict[str, Callable[[BrokerServices, tuple[str, ...]], Iterator[Family]]]] = {
    "kafka_server_brokertopicmetrics_": _of_topics,
    "kafka_server_replicamanager_": _of_replicas,
    "headrace_damaged_": _of_damage,
    "kafka_log_log_": _of_logs,
    "kafka_controller_": _of_controller,
    "headrace_quota_": _of_quotas,
    "": _of_others,
}
"""The functions that build metrics, by the common prefix of the names."""
