"""What the brokers of a cluster have counted, asked of all at once: one that hangs delays nobody for long."""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from threading import Lock
from typing import Final, TypeVar

from headrace.client.brokers import Brokers
from headrace.client.errors import ClientError
from headrace.client.wire import Address, NoAnswer
from headrace.protocol.broker_metrics import BrokerMetricsRequest, BrokerMetricsResponse
from headrace.protocol.schema.metadata import MetadataResponse

WITHIN_S: Final = 3.0
THREADS: Final = 8

logger = logging.getLogger(__name__)

Counted = Mapping[int, BrokerMetricsResponse]
Answer = TypeVar("Answer")


class Counters:
    """Asks, with connections and threads of its own: other requests have theirs for themselves."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="metrics")
        self._lock = Lock()
        self._idle: dict[str, list[Brokers]] = {}  # by whom they are for

    def metadata(self) -> MetadataResponse:
        """Who is there; Unreachable if nobody says so in time."""
        return self._with(self._bootstrap, Brokers.metadata)

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
        with self._lock:
            idle = [each for those in self._idle.values() for each in those]
            self._idle.clear()
        for brokers in idle:
            brokers.close()

    def _ask(self, address: Address, request: BrokerMetricsRequest) -> BrokerMetricsResponse:
        answer: BrokerMetricsResponse = self._with(str(address), lambda brokers: brokers.at(address, request))
        return answer

    def _with(self, whom: str, ask: Callable[[Brokers], Answer]) -> Answer:
        with self._lock:
            spare = self._idle.get(whom)
            brokers = spare.pop() if spare else None
        if brokers is None:
            brokers = Brokers(whom, answer_s=WITHIN_S, client_id="headrace-metrics")
        try:
            answer = ask(brokers)
        except BaseException:
            brokers.close()
            raise
        with self._lock:
            self._idle.setdefault(whom, []).append(brokers)
        return answer
