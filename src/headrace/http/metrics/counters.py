"""The metrics of all brokers and the state of all groups, read at the same time."""

import logging
from collections.abc import Container, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from threading import Lock
from typing import Final

from headrace.client.cluster.log_dirs import LogDir, read_log_dirs
from headrace.client.errors import ClientError
from headrace.client.groups.group import Group
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Connection, NoAnswer
from headrace.client.wire.requests import metadata_request, nodes_of
from headrace.http.reach import CLIENT_ID, Reach
from headrace.protocol.broker_metrics import BrokerMetricsRequest, BrokerMetricsResponse
from headrace.protocol.schema.metadata import MetadataResponse

TIMEOUT_S: Final = 3.0
THREADS: Final = 4

logger = logging.getLogger(__name__)

Counted = Mapping[int, BrokerMetricsResponse]
"""The metrics of brokers, by broker id."""


class Counters:
    """Reads metrics with a short timeout; `Brokers` remember hung brokers and wait less for them."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._brokers = Brokers(reach.connection, answer_s=TIMEOUT_S, client_id=CLIENT_ID)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="metrics")
        self._lock = Lock()
        self._groups: Future[list[Group]] | None = None

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
        return read_log_dirs(self._brokers, [each for each in nodes_of(metadata) if each.id in brokers], {})

    def begin_groups(self) -> "Future[list[Group]]":
        """Start to describe all groups in a thread, unless a thread already does, so that a scrape waits for
        brokers and groups at the same time.
        """
        with self._lock:
            if self._groups is None or self._groups.done():
                self._groups = self._threads.submit(self._describe_groups)
            return self._groups

    def _describe_groups(self) -> list[Group]:
        groups = self._reach.groups
        return groups.describe_there(each.name for each in groups.list_groups())

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._brokers.close()


def groups_in_time(described: "Future[list[Group]]") -> list[Group] | None:
    """Return the groups, or None if describing them fails or takes longer than TIMEOUT_S."""
    try:
        return described.result(TIMEOUT_S)
    except FutureTimeout:
        logger.info("no metrics of groups: describing them takes more than %g s", TIMEOUT_S)
    except ClientError as error:
        logger.info("no metrics of groups: %s", error)
    return None


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
