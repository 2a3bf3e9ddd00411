"""The brokers of a cluster as they are now, asked from any thread, and none of them waited for for long.

brokers = LiveBrokers("127.0.0.1:9092")
brokers.each({node: lambda at: at.ask(ListGroupsRequest()) for node in brokers.nodes()})
"""

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Final, NamedTuple, TypeVar

from headrace.client.errors import Unreachable
from headrace.client.wire.brokers import addresses_of
from headrace.client.wire.connection import CLIENT_ID, Address, Connection, NoAnswer
from headrace.client.wire.security import PLAINTEXT, Security
from headrace.client.wire.settling import Again
from headrace.client.wire.spare_connections import SpareConnections, Talk
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

ANSWER_S: Final = 2.0  # for one broker
SILENT_S: Final = 0.3  # for one that has let us wait a moment ago; and until another is asked as well
FORGIVEN_S: Final = 5.0  # after which it has as long as the others again
QUESTION_S: Final = 4.0  # for all that a question takes
THREADS: Final = 32  # of one question

Answer = TypeVar("Answer")
Key = TypeVar("Key", bound=Hashable)


class Node(NamedTuple):
    """A broker, and where it is."""

    id: int
    host: str
    port: int

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


class LiveBrokers:
    """For any number of threads. Nothing that it has learned is believed for longer than a question."""

    def __init__(
        self,
        bootstrap: str,
        *,
        answer_s: float = ANSWER_S,
        client_id: str = CLIENT_ID,
        security: Security = PLAINTEXT,
    ) -> None:
        self._bootstrap = bootstrap
        self._told = tuple(addresses_of(bootstrap))
        self._heard: tuple[Address, ...] = ()  # by the cluster: those that we were told may be gone
        self._turns = count()
        self._has_answered = False
        self._failed: set[Address] = set()  # those that gave no answer when they were last asked
        self._silent: dict[Address, float] = {}  # since when
        self._connections = SpareConnections(
            partial(Connection, answer_s=answer_s, client_id=client_id, security=security)
        )

    def close(self) -> None:
        self._connections.close()

    def metadata(self, topics: Iterable[str] | None = (), within_s: float = ANSWER_S) -> MetadataResponse:
        """Brokers and these topics, or all of them (None); another broker is asked each time."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        found: MetadataResponse = self.first(lambda at: at.ask(request), within_s)
        self._heard = tuple(Address(each.host, each.port) for each in found.brokers)
        return found

    def nodes(self) -> list[Node]:
        """The brokers that are registered; one of them may be dead, and not known to be."""
        return nodes_of(self.metadata())

    def partitions(self, topics: Iterable[str]) -> dict[str, set[int]]:
        """The partitions of those topics that any broker knows: a new one is not known to all."""
        wanted = [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        found: dict[str, set[int]] = {}
        for answer in self.each({node: lambda at: at.ask(request) for node in self.nodes()}).values():
            for topic in () if isinstance(answer, NoAnswer) else answer.topics:
                if topic.partitions:
                    found.setdefault(topic.name, set()).update(
                        each.partition_index for each in topic.partitions
                    )
        return found

    def first(self, talk: Talk[Answer], within_s: float = ANSWER_S) -> Answer:
        """The answer of whoever gives one first; Unreachable if nobody does.

        One is asked, and each time that nothing has come for a moment another one too.
        """
        why, left, asked = "expected HOST:PORT,...", self._in_turn(), dict[Future[Answer], Address]()
        deadline = time.monotonic() + within_s
        with _threads(THREADS) as threads:
            while left or asked:
                if left:
                    address = left.pop(0)
                    asked[threads.submit(self._ask, address, talk)] = address
                limit = deadline - time.monotonic()
                done, _ = wait(asked, max(0.0, min(limit, SILENT_S) if left else limit), FIRST_COMPLETED)
                for each in done:
                    del asked[each]
                    try:
                        return each.result()
                    except NoAnswer as error:
                        why = self._why(error)
                if not done and not left:
                    why = f"{next(iter(asked.values()))} does not answer: it takes too long"
                    self._silent |= dict.fromkeys(asked.values(), time.monotonic())
                    break
        raise Unreachable(f"no broker answers at {self._bootstrap}: {why}")

    def each(
        self, talks: Mapping[Node, Talk[Answer]], within_s: float = ANSWER_S
    ) -> dict[Node, Answer | NoAnswer]:
        """The answers of these, who are asked at once; NoAnswer of those that give none in time."""
        begun = time.monotonic()
        limits = {
            node: begun + (min(within_s, SILENT_S) if self._is_silent(node.address) else within_s)
            for node in talks
        }
        answers: dict[Node, Answer | NoAnswer] = {}
        with _threads(min(THREADS, len(talks))) as threads:
            asked = {node: threads.submit(self._ask, node.address, talk) for node, talk in talks.items()}
            for node, future in asked.items():
                try:
                    answers[node] = future.result(max(0.0, limits[node] - time.monotonic()))
                except NoAnswer as error:
                    answers[node] = error
                except TimeoutError:
                    self._silent.setdefault(node.address, begun)
                    answers[node] = NoAnswer(f"{node.address} does not answer: it takes too long")
        return answers

    def scatter(
        self,
        asked: Mapping[Node, list[Key]],
        talk: Callable[[Node, list[Key], Connection], Mapping[Key, Answer | Again]],
        within_s: float = ANSWER_S,
    ) -> dict[Key, Answer | Again]:
        """What the brokers say of the keys that each is asked about; Again where one does not answer."""
        talks = {node: partial(talk, node, keys) for node, keys in asked.items()}
        found: dict[Key, Answer | Again] = {}
        for node, answer in self.each(talks, within_s).items():
            if isinstance(answer, NoAnswer):
                found |= dict.fromkeys(asked[node], Again(f"broker {node.id}: {answer}"))
            else:
                found |= answer
        return found

    def _ask(self, address: Address, talk: Talk[Answer]) -> Answer:
        try:
            answer = self._connections.ask(address, talk)
        except NoAnswer as error:
            self._failed.add(address)
            if isinstance(error.__cause__, TimeoutError):
                self._silent[address] = time.monotonic()
            raise
        self._has_answered = True
        self._failed.discard(address)
        self._silent.pop(address, None)
        return answer

    def _in_turn(self) -> list[Address]:
        """All that we know of, each time another one first; those that do not answer last."""
        known = list(dict.fromkeys([*self._heard, *self._told]))
        if known:
            first = next(self._turns) % len(known)
            known = [*known[first:], *known[:first]]
        return sorted(known, key=lambda each: each in self._failed or each in self._silent)

    def _is_silent(self, address: Address) -> bool:
        since = self._silent.get(address)
        if since is not None and time.monotonic() - since > FORGIVEN_S:
            self._silent.pop(address, None)
            return False
        return since is not None

    def _why(self, error: NoAnswer) -> str:
        return f"{error}; {error.doubt}" if error.doubt and not self._has_answered else str(error)


def nodes_of(found: MetadataResponse) -> list[Node]:
    """The brokers that are registered."""
    return [Node(each.node_id, each.host, each.port) for each in found.brokers]


@contextmanager
def _threads(number: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that nobody waits for: one that a broker keeps waiting ends when its connection does."""
    threads = ThreadPoolExecutor(max(1, number), thread_name_prefix="asking")
    try:
        yield threads
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
