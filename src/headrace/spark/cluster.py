"""The cluster as a reader or writer of topics sees it: which partitions there are, who leads them, how far
their logs go. Whatever may pass by itself, as between two leaders, is asked again for a while.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from headrace.client.errors import ClientError, Unreachable
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Address, Connection, NoAnswer
from headrace.client.wire.security import PLAINTEXT, Security
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from headrace.spark.errors import SparkError

CLIENT_ID: Final = "headrace-spark"
FIRST_PATIENCE_S: Final = 5.0  # with a cluster that has never answered: is it there at all?
PATIENCE_S: Final = 60.0  # with a cluster that is between two leaders
RETRY_S: Final = 0.1
LAST_RETRY_S: Final = 1.0

PASSING: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # also of a broker that has not heard of it yet
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}
"""What a new leader, or a moment, puts right."""

Answer = TypeVar("Answer")


class Passing(Exception):
    """Something that is worth another attempt."""


class NoSuchTopic(SparkError):
    """There is no topic of this name."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"there is no topic {topic!r}: create it (headrace topic create {topic}), or correct the name"
        )


@contextmanager
def _in_words_of_ours() -> Iterator[None]:
    """Passing if a broker is silent; SparkError if it is there and refuses, which no patience will change."""
    try:
        yield
    except (NoAnswer, Unreachable) as error:
        raise Passing(str(error)) from error
    except ClientError as error:
        raise SparkError(str(error)) from error


def describe(code: int) -> str:
    """A broker's error as words."""
    try:
        return ErrorCode(code).name.replace("_", " ").lower()
    except ValueError:
        return f"error {code}"


class Cluster:
    """A cluster behind some of its brokers' addresses. Connections are made when they are needed."""

    def __init__(
        self,
        bootstrap: str,
        security: Security = PLAINTEXT,
        *,
        patience_s: float = PATIENCE_S,
        creates_topics: bool = False,  # those that are named, if the brokers do so
        client_id: str = CLIENT_ID,
    ) -> None:
        self.bootstrap = bootstrap
        self._security = security
        self._patience_s = patience_s
        self._creates_topics = creates_topics
        self._has_answered = False
        self._client_id = client_id
        self._brokers = Brokers(bootstrap, client_id=client_id, security=security)
        self._addresses: dict[int, Address] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self._ids: dict[str, bytes] = {}

    def close(self) -> None:
        self._brokers.close()

    # -- what there is -------------------------------------------------------------------------

    def topics(self, names: Iterable[str] | None = None) -> dict[str, list[int]]:
        """The partitions of each of these topics that exists; of all there are if none is named."""
        asked = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        return self.patiently(lambda: _partitions(self._metadata(asked)))

    def brokers(self) -> int:
        """How many there are."""
        return len(self.patiently(lambda: self._metadata([])).brokers)

    def matching(self, pattern: str) -> dict[str, list[int]]:
        """The topics whose whole name matches, as Kafka's consumers have it; none that is internal."""

        def ask() -> dict[str, list[int]]:
            found = self._metadata(None)
            internal = {topic.name for topic in found.topics if topic.is_internal}
            return {
                name: partitions
                for name, partitions in _partitions(found).items()
                if name not in internal and re.fullmatch(pattern, name)
            }

        return self.patiently(ask)

    def _metadata(self, topics: list[MetadataRequestTopic] | None) -> MetadataResponse:
        found: MetadataResponse = self.any(
            MetadataRequest(topics=topics, allow_auto_topic_creation=self._creates_topics)
        )
        self._has_answered = True
        self._addresses = {each.node_id: Address(each.host, each.port) for each in found.brokers}
        self._brokers.know(self._addresses.values())
        for topic in found.topics:
            if topic.name is None:
                continue
            self._ids[topic.name] = topic.topic_id
            for each in topic.partitions:
                self._leaders[TopicPartition(topic.name, each.partition_index)] = each.leader_id
        return found

    def leader(self, place: TopicPartition) -> Address:
        """Where the partition's leader is; Passing while it has none."""
        if self._leaders.get(place, -1) not in self._addresses:
            self._metadata([MetadataRequestTopic(name=place.topic)])
        address = self._addresses.get(self._leaders.get(place, -1))
        if address is None:
            raise Passing(f"{place} has no leader at the moment")
        return address

    def topic_id(self, topic: str) -> bytes:
        """The id that the last Metadata response had for the topic; zeros if it had none."""
        return self._ids.get(topic, bytes(16))

    def forget_leader(self, place: TopicPartition) -> None:
        """It has turned out not to lead any more: ask who does before the next attempt."""
        self._leaders.pop(place, None)

    def connect(self, address: Address) -> Connection:
        """A connection of one's own, for whoever has several requests on their way at a time."""
        with _in_words_of_ours():
            return Connection(address, client_id=self._client_id, security=self._security)

    def ask(self, address: Address, request: Any) -> Any:
        with _in_words_of_ours():
            return self._brokers.at(address, request)

    def any(self, request: Any) -> Any:
        with _in_words_of_ours():
            return self._brokers.any(request)

    # -- how far logs go -----------------------------------------------------------------------

    def offsets(
        self, at: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        """The offset of each partition that a timestamp stands for, or EARLIEST or LATEST; -1: none does."""
        found: dict[TopicPartition, int] = {}

        def ask() -> dict[TopicPartition, int]:
            by_leader: dict[Address, dict[TopicPartition, int]] = {}
            for place, timestamp in at.items():
                if place not in found:
                    by_leader.setdefault(self.leader(place), {})[place] = timestamp
            for address, wanted in by_leader.items():
                self._list_offsets(address, wanted, found, read_committed=read_committed)
            return found

        return self.patiently(ask)

    def _list_offsets(
        self,
        address: Address,
        wanted: Mapping[TopicPartition, int],
        found: dict[TopicPartition, int],
        *,
        read_committed: bool,
    ) -> None:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for place, timestamp in wanted.items():
            topics.setdefault(place.topic, []).append(
                ListOffsetsPartition(partition_index=place.partition, timestamp=timestamp)
            )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(read_committed),
            topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
            timeout_ms=int(PATIENCE_S * 1000),
        )
        try:
            response = self.ask(address, request)
        except Passing:
            for place in wanted:
                self.forget_leader(place)
            raise
        why = None
        for topic in response.topics:
            for each in topic.partitions:
                place = TopicPartition(topic.name, each.partition_index)
                if each.error_code == ErrorCode.NONE:
                    found[place] = each.offset
                else:
                    self.forget_leader(place)
                    why = self._refused(place, each.error_code)
        if why is not None:
            raise why

    def _refused(self, place: TopicPartition, code: int) -> Exception:
        if code in PASSING:
            return Passing(f"{place}: {describe(code)}")
        return SparkError(f"{place}: the broker says {describe(code)}")

    # -- trying again --------------------------------------------------------------------------

    def patiently(self, ask: Callable[[], Answer]) -> Answer:
        """The answer, as soon as there is one; SparkError with the last reason if there is none for long."""
        began, delay = time.monotonic(), RETRY_S
        while True:
            try:
                return ask()
            except Passing as error:
                patience_s = self._patience_s if self._has_answered else FIRST_PATIENCE_S
                if time.monotonic() + delay > began + patience_s:
                    raise SparkError(f"{error} (for {patience_s:g} s)") from error
            time.sleep(delay)
            delay = min(2 * delay, LAST_RETRY_S)


def _partitions(found: MetadataResponse) -> dict[str, list[int]]:
    """The partitions of every topic that is there; whoever may not see one is told so."""
    topics: dict[str, list[int]] = {}
    for topic in found.topics:
        if topic.name is None or topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue
        if topic.error_code in PASSING:
            raise Passing(f"topic {topic.name}: {describe(topic.error_code)}")
        if topic.error_code != ErrorCode.NONE:
            raise SparkError(f"topic {topic.name}: the broker says {describe(topic.error_code)}")
        topics[topic.name] = sorted(each.partition_index for each in topic.partitions)
    return topics
