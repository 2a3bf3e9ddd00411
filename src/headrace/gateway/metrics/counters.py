"""The metrics of all brokers, and the state of groups and pipelines, read at the same time."""

import logging
import time
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from threading import Lock
from typing import Final, Generic, TypeVar

from headrace.client.cluster.log_dirs import LogDir, read_log_dirs
from headrace.client.errors import ClientError
from headrace.client.groups.group import Group
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Connection, NoAnswer
from headrace.client.wire.requests import metadata_request, nodes_of
from headrace.gateway.pipelines import Pipelines
from headrace.gateway.reach import CLIENT_ID, Reach
from headrace.pipeline.progress import Figures
from headrace.protocol.between_brokers.broker_metrics import BrokerMetricsRequest, BrokerMetricsResponse
from headrace.protocol.schema.metadata import MetadataResponse

TIMEOUT_S: Final = 3.0
THREADS: Final = 4

logger = logging.getLogger(__name__)

Counted = Mapping[int, BrokerMetricsResponse]
"""The metrics of brokers, by broker id."""

Value = TypeVar("Value")


class InBackground(Generic[Value]):
    """A value that a thread reads while a scrape reads others; scrapes at the same time share the read."""

    def __init__(self, threads: ThreadPoolExecutor, what: str, read: Callable[[], Value]) -> None:
        self._threads = threads
        self._what = what
        self._read = read
        self._lock = Lock()
        self._running: Future[Value] | None = None
        self._complaint = ""

    def begin(self) -> "Future[Value]":
        with self._lock:
            if self._running is None or self._running.done():
                self._running = self._threads.submit(self._read)
            return self._running

    def in_time(self, begun: "Future[Value]", until_s: float) -> Value | None:
        """Return the value, or None if reading it fails or takes too long; `until_s` is monotonic."""
        try:
            found = begun.result(max(0, until_s - time.monotonic()))
        except FutureTimeout:
            self._complain(f"reading them takes more than {TIMEOUT_S:g} s")
            return None
        except ClientError as error:
            self._complain(str(error))
            return None
        except Exception:
            logger.exception("no metrics of %s", self._what)  # the others are returned all the same
            return None
        self._complaint = ""
        return found

    def _complain(self, why: str) -> None:
        """Log what is new, not the same at every scrape."""
        if why != self._complaint:
            self._complaint = why
            logger.info("no metrics of %s: %s", self._what, why)


class Counters:
    """Reads metrics with a short timeout; `Brokers` remember hung brokers and wait less for them."""

    def __init__(self, reach: Reach, pipelines: Pipelines) -> None:
        self._brokers = Brokers(reach.connection, answer_s=TIMEOUT_S, client_id=CLIENT_ID)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="metrics")
        groups = reach.groups
        self.groups: InBackground[list[Group]] = InBackground(
            self._threads,
            "groups",
            lambda: groups.describe_there(group.name for group in groups.list_groups()),
        )
        self.pipelines: InBackground[dict[str, list[Figures]]] = InBackground(
            self._threads, "pipelines", lambda: pipelines.totals(time.time_ns() // 1_000_000)
        )

    def metadata(self) -> MetadataResponse:
        """Return the brokers and all topics; raise Unreachable if no broker answers in time."""
        return self._brokers.any_metadata(None, TIMEOUT_S)

    def count(
        self, metadata: MetadataResponse, prefixes: Sequence[str] = (), *, only: int | None = None
    ) -> Counted:
        """Return the metrics of all brokers, or of `only` one, that answer in time."""
        read = partial(_read_metrics, BrokerMetricsRequest(prefixes=list(prefixes)))
        reads = {node: read for node in nodes_of(metadata) if only is None or node.id == only}
        answers: dict[int, BrokerMetricsResponse] = {}
        for node, answer in self._brokers.each(reads, TIMEOUT_S).items():
            if isinstance(answer, NoAnswer):
                logger.info("no metrics of broker %d: %s", node.id, answer)
            else:
                answers[node.id] = answer
        return answers

    def disks(self, metadata: MetadataResponse, brokers: Container[int]) -> Mapping[int, Sequence[LogDir]]:
        """Return the log directories of these brokers, without their partitions, which would take long."""
        return read_log_dirs(self._brokers, [node for node in nodes_of(metadata) if node.id in brokers], {})

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._brokers.close()


def _read_metrics(request: BrokerMetricsRequest, connection: Connection) -> BrokerMetricsResponse:
    """Return a broker's metrics, or none if the broker is Apache Kafka, which closes the connection."""
    connection.ask(metadata_request())
    try:
        answer: BrokerMetricsResponse = connection.ask(request)
    except NoAnswer as error:
        if error.timed_out:
            raise
        return BrokerMetricsResponse(broker_id=-1, at_ms=0, families=[])
    return answer
