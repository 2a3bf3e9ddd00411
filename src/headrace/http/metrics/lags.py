"""Topics and groups, under the names that kafka_exporter has made usual: people look for lag first."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooLate
from threading import Lock
from typing import Final

from headrace.client.cluster.reading import read_partitions
from headrace.client.cluster.status import PartitionState
from headrace.client.errors import ClientError
from headrace.client.groups.group import Group
from headrace.http.metrics.counters import WITHIN_S, Counted, Counters
from headrace.http.metrics.derived import of_brokers, of_coordinators, of_followers, sums
from headrace.http.metrics.exposition import gauge
from headrace.http.reach import Reach
from headrace.protocol.broker_metrics import Family
from headrace.protocol.schema.metadata import MetadataResponse

logger = logging.getLogger(__name__)

_PARTITION = ("topic", "partition")
_GROUP = ("consumergroup", "topic", "partition")
_OF_PARTITIONS: Final[dict[str, tuple[str, Callable[[PartitionState], float]]]] = {
    "leader": ("The broker that leads it, or -1.", lambda each: -1 if each.leader is None else each.leader),
    "replicas": ("Its replicas.", lambda each: len(each.replicas)),
    "in_sync_replica": ("Those in sync.", lambda each: len(each.in_sync)),
    "leader_is_preferred": (
        "Whether its first replica leads it.",
        lambda each: each.leader is not None and each.leader == each.replicas[0],
    ),
    "under_replicated_partition": ("Whether one is not.", lambda each: bool(each.lacks)),
}


class Lags:
    """Looks up how groups stand, beside what brokers count; what takes too long is left out once."""

    def __init__(self, reach: Reach, counters: Counters) -> None:
        self._reach = reach
        self._counters = counters
        self._looking: Future[list[Group]] | None = None
        self._lock = Lock()

    def begin(self) -> "Future[list[Group]]":
        """Look, unless somebody does: a scrape waits for what takes longest, not for one after another."""
        with self._lock:
            if self._looking is None or self._looking.done():
                self._looking = self._counters.begin(self._look)
            return self._looking

    def families(
        self, found: MetadataResponse, counted: Counted, looking: "Future[list[Group]]"
    ) -> Iterator[Family]:
        """All of them, as the cluster is now; `looking` is what was begun."""
        yield gauge("kafka_brokers", "Brokers that are alive.", (), [((), len(found.brokers))])
        yield of_brokers(found)
        partitions = read_partitions(found)
        yield gauge(
            "headrace_broker_up",
            "Whether a broker has answered.",
            ("broker",),
            [((str(each),), each in counted) for each in known_brokers(found, partitions)],
        )
        yield from _of_partitions(partitions, counted)
        yield of_followers(partitions, counted)
        groups = _looked_up(looking)
        if groups is not None:
            yield from _of_groups(groups)
            yield from sums(groups)
            yield of_coordinators(groups, counted)

    def _look(self) -> list[Group]:
        """All groups that somebody tells of."""
        groups = self._reach.groups
        return groups.describe_there(each.name for each in groups.list_groups())


def _looked_up(looking: "Future[list[Group]]") -> list[Group] | None:
    """What was found; None if that takes too long, or nobody says."""
    try:
        return looking.result(WITHIN_S)
    except TooLate:
        logger.info("no groups: it takes too long")
    except ClientError as error:
        logger.info("no groups: %s", error)
    return None


def known_brokers(found: MetadataResponse, partitions: Iterable[PartitionState]) -> list[int]:
    """Those that are alive, and those that are not and have replicas on them."""
    return sorted(
        {each.node_id for each in found.brokers} | {each for of in partitions for each in of.replicas}
    )


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
