"""Topics and groups, under the names that kafka_exporter has made usual: people look for lag first."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from typing import Final

from headrace.client.cluster_reading import read_partitions
from headrace.client.cluster_status import PartitionState
from headrace.client.errors import ClientError, NoSuchGroup
from headrace.client.groups import Group
from headrace.http.metrics.counters import WITHIN_S, Counted, Counters
from headrace.http.metrics.exposition import gauge
from headrace.http.reach import Reach
from headrace.protocol.broker_metrics import Family
from headrace.protocol.schema.metadata import MetadataResponse

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 3
_PARTITION = ("topic", "partition")
_GROUP = ("consumergroup", "topic", "partition")
_OF_PARTITIONS: Final[dict[str, tuple[str, Callable[[PartitionState], float]]]] = {
    "leader": ("The broker that leads it, or -1.", lambda each: -1 if each.leader is None else each.leader),
    "replicas": ("Its replicas.", lambda each: len(each.replicas)),
    "in_sync_replica": ("Those in sync.", lambda each: len(each.in_sync)),
    "under_replicated_partition": ("Whether one is not.", lambda each: bool(each.lacks)),
}


class Lags:
    """Looks up how groups stand, in the background: what librdkafka takes too long for is left out once."""

    def __init__(self, reach: Reach, counters: Counters) -> None:
        self._reach = reach
        self._counters = counters
        self._looking: Future[list[Group]] | None = None

    def families(self, found: MetadataResponse, counted: Counted) -> Iterator[Family]:
        """All of them, as the cluster is now."""
        yield gauge("kafka_brokers", "Brokers that are alive.", (), [((), len(found.brokers))])
        yield gauge(
            "headrace_broker_up",
            "Whether a broker has answered.",
            ("broker",),
            [((str(each.node_id),), each.node_id in counted) for each in found.brokers],
        )
        yield from _of_partitions(read_partitions(found), counted)
        yield from _of_groups(self._groups())

    def _groups(self) -> list[Group]:
        if self._looking is None:
            self._looking = self._counters.begin(self._look)
        looking = self._looking
        try:
            groups = looking.result(WITHIN_S)
        except TooLate:
            return []  # it goes on, and is there for the next scrape
        except ClientError as error:
            logger.info("no groups: %s", error)
            groups = []
        self._looking = None
        return groups

    def _look(self) -> list[Group]:
        """All groups; one that goes between its name and its offsets is none."""
        for _ in range(_ATTEMPTS):
            names = [each.name for each in self._reach.groups.list_groups()]
            try:
                return self._reach.groups.describe(names)
            except NoSuchGroup:
                continue
        return []


def _of_partitions(partitions: list[PartitionState], counted: Counted) -> Iterator[Family]:
    counts = Counter(each.topic for each in partitions)
    yield gauge(
        "kafka_topic_partitions",
        "Partitions of a topic.",
        ("topic",),
        [((name,), n) for name, n in counts.items()],
    )
    for name, (help_, value) in _OF_PARTITIONS.items():
        yield gauge(
            f"kafka_topic_partition_{name}",
            help_,
            _PARTITION,
            [((each.topic, str(each.partition)), value(each)) for each in partitions],
        )
    for name, help_, source in (
        ("current_offset", "Its next offset.", "kafka_log_log_logendoffset"),
        ("oldest_offset", "The first offset there is.", "kafka_log_log_logstartoffset"),
    ):
        found = _of_leaders(partitions, counted, source)
        yield gauge(f"kafka_topic_partition_{name}", help_, _PARTITION, found)


def _of_leaders(
    partitions: list[PartitionState], counted: Counted, source: str
) -> Iterator[tuple[tuple[str, str], float]]:
    """What the leader of each partition has counted under the name `source`."""
    said = {
        (broker_id, *sample.labels): sample.value
        for broker_id, answer in counted.items()
        for family in answer.families
        if family.name == source
        for sample in family.samples
    }
    for each in partitions:
        value = said.get((each.leader, each.topic, str(each.partition)))
        if value is not None:
            yield (each.topic, str(each.partition)), value


def _of_groups(groups: list[Group]) -> Iterator[Family]:
    yield gauge(
        "kafka_consumergroup_members",
        "Members of a group.",
        ("consumergroup",),
        [((each.name,), len(each.members)) for each in groups],
    )
    offsets = [(group.name, offset) for group in groups for offset in group.partitions]
    yield gauge(
        "kafka_consumergroup_current_offset",
        "How far a group is: the next offset that it reads.",
        _GROUP,
        [
            ((name, each.topic, str(each.partition)), each.committed)
            for name, each in offsets
            if each.committed is not None
        ],
    )
    yield gauge(
        "kafka_consumergroup_lag",
        "Records that a group has not read yet.",
        _GROUP,
        [
            ((name, each.topic, str(each.partition)), each.lag)
            for name, each in offsets
            if each.lag is not None
        ],
    )
