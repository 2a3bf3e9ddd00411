"""The throughput of a cluster, sampled while the console's charts are open."""

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from headrace.client.errors import ClientError
from headrace.gateway.metrics.counters import Counted, Counters
from headrace.system.background import BackgroundThread

EVERY_S: Final = 2.0
FIRST_S: Final = 0.5  # until the second sample, so that a chart has a first point soon
KEPT: Final = 300  # points: ten minutes
INTEREST_S: Final = 600.0  # sampling stops so long after the last request
_COUNTERS: Final = {
    "kafka_server_brokertopicmetrics_messagesin_total": "messages_in",
    "kafka_server_brokertopicmetrics_bytesin_total": "bytes_in",
    "kafka_server_brokertopicmetrics_bytesout_total": "bytes_out",
}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rate:
    """Messages and bytes per second."""

    messages_in: float = 0.0
    bytes_in: float = 0.0
    bytes_out: float = 0.0

    def __add__(self, other: "Rate") -> "Rate":
        return Rate(
            self.messages_in + other.messages_in,
            self.bytes_in + other.bytes_in,
            self.bytes_out + other.bytes_out,
        )


@dataclass(frozen=True, slots=True)
class Point:
    """The rates between two samples: of each broker that answered both times, and of topics with traffic.

    The point is not complete if a broker has no rate: then the rates of topics and of all brokers together
    are not known.
    """

    at_ms: int
    brokers: Mapping[int, Rate]
    topics: Mapping[str, Rate]
    complete: bool = True

    def as_json(self, topic: str | None) -> dict[str, Any]:
        """Return the rates of all brokers, and of `topic` if it is given; null if that is not known."""
        brokers = {str(broker_id): asdict(rate) for broker_id, rate in self.brokers.items()}
        point: dict[str, Any] = {"at_ms": self.at_ms, "complete": self.complete, "brokers": brokers}
        if topic is None:
            return point
        return point | {"topic": asdict(self.topics.get(topic, Rate())) if self.complete else None}


@dataclass(frozen=True, slots=True)
class Sample:
    """The counters of all brokers at one time of the monotonic clock."""

    at_s: float
    counts: Mapping[tuple[int, str], Mapping[str, float]] = field(default_factory=dict)
    """By broker and topic; the topic "" has the totals."""
    registered: frozenset[int] = frozenset()
    """The brokers that are alive by the metadata, whether they have answered or not."""

    @property
    def brokers(self) -> set[int]:
        """The brokers that have answered."""
        return {broker_id for broker_id, topic in self.counts if not topic}


class Rates:
    """Samples in a thread of its own, which ends INTEREST_S after the last call of `points`."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._points: deque[Point] = deque(maxlen=KEPT)
        self._last: Sample | None = None
        self._requested_s = 0.0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: BackgroundThread | None = None

    def points(self) -> list[Point]:
        """Return the points of the last ten minutes, and keep sampling."""
        with self._lock:
            self._requested_s = time.monotonic()
            if self._thread is None or not self._thread.is_alive():
                self._last = None
                self._thread = BackgroundThread(self._run, name="rates", stop=self._stop.set)
                self._thread.start()
            return list(self._points)

    def close(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while time.monotonic() - self._requested_s < INTEREST_S:
            self._take()
            if self._stop.wait(EVERY_S if self._points else FIRST_S):
                return

    def _take(self) -> None:
        try:
            metadata = self._counters.metadata()
            counted = self._counters.count(metadata, list(_COUNTERS))
        except ClientError as error:
            logger.info("no rates: %s", error)
            self._last = None  # the chart has a gap here instead of an interpolated line
            return
        registered = frozenset(broker.node_id for broker in metadata.brokers)
        sample = Sample(time.monotonic(), _counts(counted), registered)
        if self._last is not None:
            point = between(self._last, sample, at_ms=time.time_ns() // 1_000_000)
            with self._lock:
                self._points.append(point)
        self._last = sample


def between(before: Sample, after: Sample, *, at_ms: int) -> Point:
    """Return the rates between two samples, without brokers that have restarted in between."""
    seconds = after.at_s - before.at_s
    brokers: dict[int, Rate] = {}
    topics: dict[str, Rate] = {}
    for (broker_id, topic), now in after.counts.items():
        if (broker_id, "") not in before.counts:
            continue  # the broker did not answer the first time
        then = before.counts.get((broker_id, topic), dict.fromkeys(now, 0.0))
        grown = {name: (value - then.get(name, 0.0)) / seconds for name, value in now.items()}
        if min(grown.values()) < 0:
            continue
        if not topic:
            brokers[broker_id] = Rate(**grown)
        elif any(grown.values()):
            topics[topic] = topics.get(topic, Rate()) + Rate(**grown)
    expected = before.brokers | after.brokers | after.registered
    return Point(at_ms, brokers, topics, complete=bool(expected) and brokers.keys() == expected)


def _counts(counted: Counted) -> dict[tuple[int, str], dict[str, float]]:
    counts: dict[tuple[int, str], dict[str, float]] = {}
    for broker_id, answer in counted.items():
        for family in answer.families:
            for sample in family.samples:
                counts.setdefault((broker_id, sample.labels[0]), {})[_COUNTERS[family.name]] = sample.value
    return counts
