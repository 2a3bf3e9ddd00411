"""The brokers of a cluster: requests to any of them, to one, to the controller, or to many at once.

with Brokers("127.0.0.1:9092") as brokers:
    brokers.controller(ListPartitionReassignmentsRequest()).topics
    brokers.each({node: lambda at: at.ask(ListGroupsRequest()) for node in brokers.nodes()})
"""

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final, Generic, Self, TypeVar

from headrace.client.errors import Unreachable, raise_for
from headrace.client.wire.connection import ANSWER_S, CLIENT_ID, NEWEST, Address, Connection, NoAnswer
from headrace.client.wire.connection_settings import ConnectionSettings, Target, addresses_of, settings_for
from headrace.client.wire.pool import ConnectionPool, Exchange
from headrace.client.wire.requests import Node, addresses_by_id, metadata_request, nodes_of
from headrace.client.wire.retry import Backoff, Unanswered
from headrace.client.wire.security import Security
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.schema.metadata import MetadataResponse

CONTROLLER_S: Final = 30.0  # how long a cluster may be without a controller
QUICK_S: Final = 2.0  # for one of several brokers that are asked at once
SILENT_S: Final = 0.3  # for a broker that was silent a moment ago; then another broker is asked as well
FORGIVEN_S: Final = 5.0  # after which a silent broker has as long as the others again
QUESTION_S: Final = 4.0  # for all requests that one question takes
PARTIAL_S: Final = 1.0  # for retries where a partial answer is an answer, too
THREADS: Final = 32  # of one question
_MOVED: Final = {ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION}

Answer = TypeVar("Answer")
Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


class NoController(Unreachable):
    """Brokers answer, but none of them is the controller at the moment."""


class Brokers:
    """The brokers of one cluster, for any number of threads; connections are made when they are needed."""

    def __init__(self, target: Target, *, answer_s: float = ANSWER_S, client_id: str = CLIENT_ID) -> None:
        self.settings = settings_for(target)
        self.bootstrap = self.settings.bootstrap
        self.has_answered = False
        security = self.settings.security
        self.connect = partial(Connection, answer_s=answer_s, client_id=client_id, security=security)
        self._answer_s = answer_s
        self._configured = tuple(addresses_of(self.bootstrap))
        self._learned: tuple[Address, ...] = ()  # from metadata: the configured brokers may be gone
        self._turns = count()
        self._failed: set[Address] = set()  # brokers whose last request had no answer
        self._silent: dict[Address, float] = {}  # brokers that let a request time out, and when
        self._pool = ConnectionPool(self.connect)

    @classmethod
    def configured(cls, bootstrap: str, settings: Mapping[str, Any]) -> Self:
        """Return the brokers as a client with these settings, whose references are resolved, connects."""
        client_id = str(settings.get("client.id", CLIENT_ID))
        return cls(ConnectionSettings(bootstrap, Security.of_resolved(settings)), client_id=client_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self._pool.close()

    @property
    def addresses(self) -> list[Address]:
        """The addresses of all brokers that are known."""
        return list(dict.fromkeys([*self._learned, *self._configured]))

    # -- one broker ----------------------------------------------------------------------------

    def at(
        self, address: Address, request: Message, *, answer_s: float | None = None, max_version: int = NEWEST
    ) -> Any:
        """Return the response of the broker at `address`; NoAnswer if there is none."""
        return self._run(address, lambda at: at.ask(request, max_version=max_version), answer_s)

    def lease(self, address: Address) -> Connection:
        """Return a connection for a caller with several requests in flight, who releases or closes it."""
        return self._pool.lease(address, self._answer_s)

    def release(self, connection: Connection) -> None:
        """Keep a leased connection for the next request; it is open, and no request is in flight."""
        self._pool.release(connection)

    def any(self, request: Message, *, answer_s: float | None = None) -> Any:
        """Return the response of the first broker that answers, tried in turn; Unreachable if none does.

        For requests that change something: a broker is asked only after the one before failed to answer.
        """
        why = "expected HOST:PORT,..."
        for address in sorted(self.addresses, key=self._failed.__contains__):
            try:
                answer = self.at(address, request, answer_s=answer_s)
            except NoAnswer as error:
                why = self._why(error)
            else:
                self._learn(answer)
                return answer
        raise Unreachable(f"no broker answers at {self.bootstrap}: {why}")

    def first(self, exchange: Exchange[Answer], within_s: float = QUICK_S) -> Answer:
        """Return the quickest answer; Unreachable if no broker answers in time.

        Another broker is asked as well after each SILENT_S without an answer: `exchange` must be idempotent.
        """
        known = self.addresses
        first = next(self._turns) % len(known) if known else 0  # another broker each time
        left = sorted(
            [*known[first:], *known[:first]],
            key=lambda address: address in self._failed or address in self._silent,
        )
        why, asked = "expected HOST:PORT,...", dict[Future[Answer], Address]()
        deadline = time.monotonic() + within_s
        with _threads(THREADS) as threads:
            while left or asked:
                if left:
                    address = left.pop(0)
                    asked[threads.submit(self._run, address, exchange, within_s)] = address
                limit = deadline - time.monotonic()
                done, _ = wait(asked, max(0.0, min(limit, SILENT_S) if left else limit), FIRST_COMPLETED)
                for each in done:
                    del asked[each]
                    try:
                        return each.result()
                    except NoAnswer as error:
                        why = self._why(error)
                if not done and not left:
                    why = f"{next(iter(asked.values()))} does not answer within {within_s:g} s"
                    self._silent |= dict.fromkeys(asked.values(), time.monotonic())
                    break
        raise Unreachable(f"no broker answers at {self.bootstrap}: {why}")

    # -- the controller ------------------------------------------------------------------------

    def controller(
        self,
        request: Message,
        *,
        timeout_s: float = CONTROLLER_S,
        answer_s: float | None = None,
        result: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Return the controller's response; NoController if there is none for `timeout_s`.

        The request is sent again if it did not reach a controller. ClientError if the controller refuses it.
        With `result`, the error is in that part of the response, which is returned for the caller to check;
        such a request is not sent again if it may have been carried out.
        """
        backoff = Backoff(timeout_s)
        while True:
            try:
                found: MetadataResponse = self.any(metadata_request())
                address = addresses_by_id(found).get(found.controller_id)
                if address is None or (address in self._failed and timeout_s <= 0):
                    raise NoAnswer("there is no controller at the moment", sent=False)  # noqa: TRY301
                response = self.at(address, request, answer_s=answer_s)
            except NoAnswer as error:
                if result is not None and error.sent:
                    raise
                why = str(error)
            else:
                found = response if result is None else result(response)
                if found.error_code not in _MOVED:
                    if result is None:
                        raise_for(found.error_code, getattr(found, "error_message", None))
                    return found
                why = "the broker is not the controller any more (NOT_CONTROLLER)"
            if not backoff.rest():
                raise NoController(f"the cluster has no controller that answers: {why}")

    # -- metadata ------------------------------------------------------------------------------

    def metadata(
        self, topics: Iterable[str] | None = None, *, within_s: float | None = None
    ) -> MetadataResponse:
        """Return brokers and these topics, or all, as the controller sees them if it answers.

        The controller knows of its own decisions first.
        """
        request = metadata_request(topics)
        found: MetadataResponse = self.decided(lambda at: at.ask(request), within_s=within_s)
        return found

    def decided(self, exchange: Exchange[Answer], *, within_s: float | None = None) -> Answer:
        """Return the controller's answer, or any broker's if the controller gives none."""
        limit_s = self._answer_s if within_s is None else within_s
        found = self.any_metadata(within_s=limit_s)
        address = addresses_by_id(found).get(found.controller_id)
        if address is not None and address not in self._failed:
            with suppress(NoAnswer):
                return self._run(address, exchange, min(limit_s, QUICK_S))
        return self.first(exchange, limit_s)

    def any_metadata(self, topics: Iterable[str] | None = (), within_s: float = QUICK_S) -> MetadataResponse:
        """Return brokers and these topics, or all (None), as some broker sees them, another one each time."""
        request = metadata_request(topics)
        found: MetadataResponse = self.first(lambda at: at.ask(request), within_s)
        self._learn(found)
        return found

    def nodes(self) -> list[Node]:
        """Return the registered brokers; one of them may have died a moment ago."""
        return nodes_of(self.any_metadata())

    def partitions(self, topics: Iterable[str]) -> dict[str, set[int]]:
        """Return the partitions of those topics that any broker knows: a new topic is not known to all."""
        request = metadata_request(topics)
        found: dict[str, set[int]] = {}
        for answer in self.each({node: lambda at: at.ask(request) for node in self.nodes()}).values():
            for topic in () if isinstance(answer, NoAnswer) else answer.topics:
                if topic.partitions:
                    found.setdefault(topic.name, set()).update(
                        partition.partition_index for partition in topic.partitions
                    )
        return found

    # -- several brokers at once ---------------------------------------------------------------

    def each(
        self, exchanges: Mapping[Node, Exchange[Answer]], within_s: float = QUICK_S
    ) -> dict[Node, Answer | NoAnswer]:
        """Return the answers of these brokers, asked at once; NoAnswer of those that give none in time."""
        started = time.monotonic()
        limits_s = {
            node: min(within_s, SILENT_S) if self._is_silent(node.address) else within_s for node in exchanges
        }
        answers: dict[Node, Answer | NoAnswer] = {}
        with _threads(min(THREADS, len(exchanges))) as threads:
            asked = {
                node: threads.submit(self._run, node.address, exchange, within_s)
                for node, exchange in exchanges.items()
            }
            for node, future in asked.items():
                try:
                    answers[node] = future.result(max(0.0, started + limits_s[node] - time.monotonic()))
                except NoAnswer as error:
                    answers[node] = error
                except TimeoutError:
                    self._silent.setdefault(node.address, started)
                    answers[node] = NoAnswer(f"{node.address} does not answer within {limits_s[node]:g} s")
        return answers

    def scatter(
        self,
        keys: Mapping[Node, list[Key]],
        ask: Callable[[Node, list[Key], Connection], Mapping[Key, Answer | Unanswered]],
        within_s: float = QUICK_S,
    ) -> dict[Key, Answer | Unanswered]:
        """Ask each broker about its keys, all at once; keys of brokers that give no answer are Unanswered."""
        exchanges = {node: partial(ask, node, some) for node, some in keys.items()}
        found: dict[Key, Answer | Unanswered] = {}
        for node, answer in self.each(exchanges, within_s).items():
            if isinstance(answer, NoAnswer):
                found |= dict.fromkeys(keys[node], Unanswered(f"broker {node.id}: {answer}"))
            else:
                found |= answer
        return found

    # -- which brokers answer ------------------------------------------------------------------

    def _run(self, address: Address, exchange: Exchange[Answer], answer_s: float | None = None) -> Answer:
        try:
            answer = self._pool.run(address, exchange, answer_s or self._answer_s)
        except NoAnswer as error:
            self._failed.add(address)
            if error.timed_out:
                self._silent[address] = time.monotonic()
            raise
        self.has_answered = True
        self._failed.discard(address)
        self._silent.pop(address, None)
        return answer

    def _learn(self, answer: Any) -> None:
        if isinstance(answer, MetadataResponse):
            self._learned = tuple(Address(broker.host, broker.port) for broker in answer.brokers)

    def _is_silent(self, address: Address) -> bool:
        since = self._silent.get(address)
        if since is not None and time.monotonic() - since > FORGIVEN_S:
            self._silent.pop(address, None)
            return False
        return since is not None

    def _why(self, error: NoAnswer) -> str:
        return f"{error}; {error.doubt}" if error.doubt and not self.has_answered else str(error)


@contextmanager
def _threads(number: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that are not joined: a thread whose broker is silent ends when its request times out."""
    threads = ThreadPoolExecutor(max(1, number), thread_name_prefix="asking")
    try:
        yield threads
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Lists(Generic[Item]):
    """What each broker lists, and why the lists of other brokers are missing."""

    by_node: Mapping[Node, Iterable[Item]]
    missing: tuple[str, ...]


def read_lists(
    brokers: Brokers,
    topic: str,
    ask: Callable[[Node, Connection], Iterable[Item] | Unanswered],
    within_s: float = QUICK_S,
) -> Lists[Item]:
    """Return the lists of all brokers, which are coordinators by leading `topic`.

    Brokers without an answer are retried for PARTIAL_S.
    """
    backoff = Backoff(QUESTION_S, retries_s=PARTIAL_S)
    while True:
        metadata = brokers.any_metadata([topic])
        answers = brokers.each({node: partial(ask, node) for node in nodes_of(metadata)}, within_s)
        listed: dict[Node, Iterable[Item]] = {}
        missing = [*leaderless(metadata, topic)]
        for node, answer in answers.items():
            if isinstance(answer, NoAnswer):
                missing.append(f"broker {node.id}: {answer}")
            elif isinstance(answer, Unanswered):
                missing.append(answer.why)
            else:
                listed[node] = answer
        if not missing or not backoff.rest():
            return Lists(listed, tuple(dict.fromkeys(missing)))


def leaderless(metadata: MetadataResponse, topic: str) -> Iterator[str]:
    """Yield a sentence if partitions of `topic` have no live leader, and so no coordinator."""
    live = {broker.node_id for broker in metadata.brokers}
    lost = sum(partition.leader_id not in live for found in metadata.topics for partition in found.partitions)
    if lost:
        yield f"{lost} of the partitions of {topic} have no leader"
