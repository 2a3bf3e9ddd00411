"""How much goes in and out of a cluster, sampled while somebody looks: for the console's charts."""

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from headrace.background import BackgroundThread
from headrace.client.errors import ClientError
from headrace.http.metrics.counters import Counted, Counters

EVERY_S: Final = 2.0
FIRST_S: Final = 0.5  # so that somebody who has just come sees something
KEPT: Final = 300  # samples: ten minutes
INTEREST_S: Final = 600.0  # after the last look
_COUNTERS: Final = {
    "kafka_server_brokertopicmetrics_messagesin_total": "messages_in",
    "kafka_server_brokertopicmetrics_bytesin_total": "bytes_in",
    "kafka_server_brokertopicmetrics_bytesout_total": "bytes_out",
}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rate:
    """A second's worth."""

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
    """What went on between two samples: of each broker that answered both times, and of topics in use."""

    at_ms: int
    brokers: Mapping[int, Rate]
    topics: Mapping[str, Rate]

    def shown(self, topic: str | None) -> dict[str, Any]:
        """For JSON: all brokers, and of topics the one that is asked for."""
        found = {
            "at_ms": self.at_ms,
            "brokers": {str(id_): asdict(rate) for id_, rate in self.brokers.items()},
        }
        if topic is not None:
            found["topic"] = asdict(self.topics.get(topic, Rate()))
        return found


@dataclass(frozen=True, slots=True)
class Sample:
    """What all brokers have counted at one time, by a clock that nobody can set."""

    at_s: float
    counts: Mapping[tuple[int, str], Mapping[str, float]] = field(default_factory=dict)
    """By broker and topic; the topic "" is all of them."""


class Rates:
    """Samples in a thread of its own, which ends when nobody has looked for a while."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._points: deque[Point] = deque(maxlen=KEPT)
        self._last: Sample | None = None
        self._looked = 0.0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: BackgroundThread | None = None

    def points(self) -> list[Point]:
        """The last ten minutes, as far as somebody looked."""
        with self._lock:
            self._looked = time.monotonic()
            if self._thread is None or not self._thread.is_alive():
                self._last = None
                self._thread = BackgroundThread(self._run, name="rates", stop=self._stop.set)
                self._thread.start()
            return list(self._points)

    def close(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while time.monotonic() - self._looked < INTEREST_S:
            self._take()
            if self._stop.wait(EVERY_S if self._points else FIRST_S):
                return

    def _take(self) -> None:
        try:
            counted = self._counters.count(self._counters.metadata(), list(_COUNTERS))
        except ClientError as error:
            logger.info("no rates: %s", error)
            self._last = None  # a gap in the chart, not a slope
            return
        sample = Sample(time.monotonic(), _counts(counted))
        if self._last is not None:
            point = between(self._last, sample, at_ms=time.time_ns() // 1_000_000)
            with self._lock:
                self._points.append(point)
        self._last = sample


def between(before: Sample, after: Sample, *, at_ms: int) -> Point:
    """What the difference of two samples is a second; a broker that has started anew is left out once."""
    seconds = after.at_s - before.at_s
    brokers: dict[int, Rate] = {}
    topics: dict[str, Rate] = {}
    for (broker_id, topic), now in after.counts.items():
        then = before.counts.get((broker_id, topic))
        if then is None:
            if not topic:
                continue  # it was not there
            then = dict.fromkeys(now, 0.0)
        grown = {name: (value - then.get(name, 0.0)) / seconds for name, value in now.items()}
        if min(grown.values()) < 0:
            continue
        rate = Rate(**grown)
        if not topic:
            brokers[broker_id] = rate
        elif rate != Rate():
            topics[topic] = topics.get(topic, Rate()) + rate
    return Point(at_ms, brokers, topics)


def _counts(counted: Counted) -> dict[tuple[int, str], dict[str, float]]:
    found: dict[tuple[int, str], dict[str, float]] = {}
    for broker_id, answer in counted.items():
        for family in answer.families:
            for sample in family.samples:
                found.setdefault((broker_id, sample.labels[0]), {})[_COUNTERS[family.name]] = sample.value
    return found
