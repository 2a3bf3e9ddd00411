"""What the brokers of a cluster have counted, asked of all at once: one that hangs delays nobody for long."""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from typing import Final, TypeVar

from headrace.client.errors import ClientError
from headrace.client.wire import Address, NoAnswer
from headrace.http.reach import Reach
from headrace.protocol.broker_metrics import BrokerMetricsRequest, BrokerMetricsResponse
from headrace.protocol.schema.metadata import MetadataResponse

WITHIN_S: Final = 3.0
THREADS: Final = 8

logger = logging.getLogger(__name__)

Counted = Mapping[int, BrokerMetricsResponse]
Answer = TypeVar("Answer")


class Counters:
    """Asks, in threads of its own and with little patience: other requests have theirs for themselves."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="metrics")

    def metadata(self) -> MetadataResponse:
        """Who is there; Unreachable if nobody says so in time."""
        with self._reach.brokers(WITHIN_S) as brokers:
            return brokers.metadata()

    def count(
        self, found: MetadataResponse, prefixes: Sequence[str] = (), *, only: int | None = None
    ) -> Counted:
        """The answers of the brokers that give one in time, by broker."""
        request = BrokerMetricsRequest(prefixes=list(prefixes))
        asked = {
            each.node_id: self.begin(lambda each=each: self._ask(Address(each.host, each.port), request))  # type: ignore[misc]
            for each in found.brokers
            if only is None or each.node_id == only
        }
        answers: dict[int, BrokerMetricsResponse] = {}
        for broker_id, answer in asked.items():
            try:
                answers[broker_id] = answer.result(WITHIN_S)
            except (NoAnswer, ClientError, TooLate) as error:
                logger.info("broker %d counts nothing: %s", broker_id, error or "it takes too long")
        return answers

    def begin(self, work: "Callable[[], Answer]") -> "Future[Answer]":
        """Have something done by one of these threads."""
        return self._threads.submit(work)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, address: Address, request: BrokerMetricsRequest) -> BrokerMetricsResponse:
        with self._reach.brokers(WITHIN_S) as brokers:
            answer: BrokerMetricsResponse = brokers.at(address, request)
        return answer
