"""What the brokers of a cluster have counted, asked of all at once: one that hangs delays nobody for long."""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Connection, NoAnswer
from headrace.client.wire.requests import metadata_request, nodes_of
from headrace.http.reach import Reach
from headrace.protocol.broker_metrics import BrokerMetricsRequest, BrokerMetricsResponse
from headrace.protocol.schema.metadata import MetadataResponse

WITHIN_S: Final = 3.0
THREADS: Final = 4

logger = logging.getLogger(__name__)

Counted = Mapping[int, BrokerMetricsResponse]
Answer = TypeVar("Answer")


class Counters:
    """Asks with little patience, and remembers who is silent: a scrape is not to wait for the same twice."""

    def __init__(self, reach: Reach) -> None:
        self._brokers = Brokers(reach.bootstrap, answer_s=WITHIN_S, client_id="headrace-gateway")
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="metrics")

    def metadata(self) -> MetadataResponse:
        """Who is there, and all topics; Unreachable if nobody says so in time."""
        return self._brokers.any_metadata(None, WITHIN_S)

    def count(
        self, found: MetadataResponse, prefixes: Sequence[str] = (), *, only: int | None = None
    ) -> Counted:
        """The answers of the brokers that give one in time, by broker."""
        talk = partial(_counted, BrokerMetricsRequest(prefixes=list(prefixes)))
        asked = {node: talk for node in nodes_of(found) if only is None or node.id == only}
        answers: dict[int, BrokerMetricsResponse] = {}
        for node, answer in self._brokers.each(asked, WITHIN_S).items():
            if isinstance(answer, NoAnswer):
                logger.info("broker %d counts nothing: %s", node.id, answer)
            else:
                answers[node.id] = answer
        return answers

    def begin(self, work: "Callable[[], Answer]") -> "Future[Answer]":
        """Have something done by one of these threads."""
        return self._threads.submit(work)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._brokers.close()


def _counted(request: BrokerMetricsRequest, at: Connection) -> BrokerMetricsResponse:
    """What a broker has counted; nothing if it is Apache Kafka's, which hangs up when it is asked that."""
    at.ask(metadata_request())
    try:
        answer: BrokerMetricsResponse = at.ask(request)
    except NoAnswer as error:
        if error.timed_out:
            raise
        return BrokerMetricsResponse(broker_id=-1, at_ms=0, families=[])
    return answer
