"""A cluster as readers see it, and Spark's sinks: topics, leaders and offsets, with retries."""

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from headrace.client.admin.topics import TopicAdmin
from headrace.client.errors import Retriable, Unreachable, raise_for
from headrace.client.wire import requests
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import NEWEST, Address, Connection
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.client.wire.retry import Backoff, retry
from headrace.client.wire.security import PLAINTEXT, Security
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.metadata import MetadataResponse
from headrace.tables.reader.errors import ReadError, no_such_topic

CLIENT_ID: Final = "headrace-reader"
CONNECT_S: Final = 5.0  # for the first answer of a cluster
NEW_TOPIC_S: Final = 5.0  # for a new topic to be known to all brokers
RETRY_S: Final = 60.0  # for retries with a cluster that has answered before

_THREADS: Final = 32

Answer = TypeVar("Answer")
Asked = TypeVar("Asked")


class ClusterConnections:
    """A cluster, by the addresses of some of its brokers. Connections are made when they are needed."""

    def __init__(
        self,
        bootstrap: str,
        security: Security = PLAINTEXT,
        *,
        timeout_s: float = RETRY_S,
        creates_topics: bool = False,  # whether Metadata requests may create topics, if the brokers allow it
        client_id: str = CLIENT_ID,
    ) -> None:
        self.bootstrap = bootstrap
        self._timeout_s = timeout_s
        self._creates_topics = creates_topics
        self._brokers = Brokers(ConnectionSettings(bootstrap, security), client_id=client_id)
        self._addresses: dict[int, Address] = {}
        self._leaders: dict[TopicPartition, int] = {}
        self.topic_ids: dict[str, bytes] = {}  # of the last Metadata responses
        self._counts: dict[str, tuple[int, float]] = {}  # of partitions, and when that was known

    def close(self) -> None:
        self._brokers.close()

    def topics(self, names: Iterable[str] | None = None) -> dict[str, list[int]]:
        """Return the partitions of those topics that exist; of all topics if no names are given."""
        return self.retry(lambda: _partitions(self._metadata(names)))

    def brokers(self) -> int:
        return len(self.retry(lambda: self._metadata(())).brokers)

    def partition_count(self, topic: str, timeout_s: float = NEW_TOPIC_S, *, max_age_s: float = 0.0) -> int:
        """Return the number of a topic's partitions; NoSuchTopic if it does not exist for `timeout_s`.

        A Metadata response that is not older than `max_age_s` is used again.
        """
        known, at_s = self._counts.get(topic, (0, -math.inf))
        if time.monotonic() - at_s < max_age_s:
            return known
        backoff = Backoff(timeout_s)
        while not (found := self.topics([topic]).get(topic)):
            if not backoff.rest():
                raise no_such_topic(topic)
        self._counts[topic] = len(found), time.monotonic()
        return len(found)

    def forget_partition_counts(self) -> None:
        """Ask for the partitions of topics again before they are used."""
        self._counts.clear()

    @property
    def admin(self) -> TopicAdmin:
        """Creates and deletes topics; raises ClientError."""
        return TopicAdmin(self._brokers)

    def matching(self, matches: Callable[[str], bool]) -> dict[str, list[int]]:
        """Return the topics whose name matches, except internal topics."""

        def ask() -> dict[str, list[int]]:
            found = self._metadata(None)
            internal = {topic.name for topic in found.topics if topic.is_internal}
            return {
                name: partitions
                for name, partitions in _partitions(found).items()
                if name not in internal and matches(name)
            }

        return self.retry(ask)

    def _metadata(self, topics: Iterable[str] | None) -> MetadataResponse:
        found: MetadataResponse = self.any(requests.metadata_request(topics, create=self._creates_topics))
        self._addresses = requests.addresses_by_id(found)
        self._leaders |= requests.leaders_of(found)
        self.topic_ids |= {topic.name: topic.topic_id for topic in found.topics if topic.name is not None}
        return found

    def leader(self, partition: TopicPartition) -> Address:
        """Return the address of a partition's leader; Retriable while it has none."""
        if self._leaders.get(partition) not in self._addresses:
            self._metadata([partition.topic])
        address = self._addresses.get(self._leaders.get(partition, -1))
        if address is None:
            raise Retriable(f"{partition} has no leader (LEADER_NOT_AVAILABLE)")
        return address

    def address(self, broker_id: int) -> Address | None:
        """Return the address of a broker by the last Metadata response; None if it is not known."""
        return self._addresses.get(broker_id)

    def known_leader(self, partition: TopicPartition) -> Address | None:
        """Return the address of a partition's leader by the last Metadata responses, if they had one."""
        return self._addresses.get(self._leaders.get(partition, -1))

    def topic_id(self, topic: str) -> bytes:
        """Return the topic's id by the last Metadata response; zeros if it had none."""
        return self.topic_ids.get(topic, bytes(16))

    def forget_leader(self, partition: TopicPartition) -> None:
        """Look for the partition's leader again before the next request to it."""
        self._leaders.pop(partition, None)

    def connect(self, address: Address) -> Connection:
        """Return a connection for a caller with several requests in flight, who releases or closes it."""
        return self._brokers.lease(address)

    def release(self, connection: Connection) -> None:
        """Keep a connection for the next caller; it is open, and no request is in flight."""
        self._brokers.release(connection)

    def any(self, request: Any) -> Any:
        return self._brokers.any(request)

    def at_coordinator(
        self, kind: requests.CoordinatorType, key: str, request: Any, *, max_version: int = NEWEST
    ) -> Any:
        """Return the response of the coordinator of a group or transactional id, which may refuse it."""
        found = self._brokers.any(requests.coordinators_request([key], kind))
        at = found.coordinators[0] if found.coordinators else found
        raise_for(at.error_code, at.error_message, f"the coordinator of {key}")
        return self._brokers.at(Address(at.host, at.port), request, max_version=max_version)

    def retry(self, attempt: Callable[[], Answer]) -> Answer:
        """Return what `attempt` returns, repeated while it raises Unreachable; ReadError after a while.

        Other errors of clients are raised as they are.
        """
        try:
            if not self._brokers.has_answered:
                connect = requests.metadata_request()
                retry(lambda: self._brokers.any(connect), Backoff(CONNECT_S), on=Unreachable)
            return retry(attempt, Backoff(self._timeout_s), on=Unreachable)
        except Unreachable as error:  # callers repeat what is unreachable: this was repeated for long enough
            raise ReadError(str(error)) from error

    def offsets(
        self, timestamps: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        """Return the offset of a timestamp, EARLIEST or LATEST in each partition; -1 if there is none."""
        found: dict[TopicPartition, int] = {}

        def ask() -> dict[TopicPartition, int]:
            by_leader: dict[Address, dict[TopicPartition, int]] = {}
            for partition, timestamp in timestamps.items():
                if partition not in found:
                    by_leader.setdefault(self.leader(partition), {})[partition] = timestamp
            ask_leader = partial(self._list_offsets, found=found, read_committed=read_committed)
            in_parallel(ask_leader, by_leader.items())
            return found

        return self.retry(ask)

    def _list_offsets(
        self,
        leader: tuple[Address, Mapping[TopicPartition, int]],
        *,
        found: dict[TopicPartition, int],
        read_committed: bool,
    ) -> None:
        address, wanted = leader
        try:
            response = self._brokers.at(
                address, requests.list_offsets_request(wanted, read_committed=read_committed)
            )
        except Unreachable:
            for partition in wanted:
                self.forget_leader(partition)
            raise
        failed: dict[TopicPartition, int] = {}
        for partition, each in requests.listed_offsets(response).items():
            if each.error_code == ErrorCode.NONE:
                found[partition] = each.offset
            else:
                failed[partition] = each.error_code
                self.forget_leader(partition)
        for partition, code in failed.items():
            raise_for(code, None, str(partition))

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets for a group without members, so that tools show the lag of a query."""

        def ask() -> None:
            self._metadata({partition.topic for partition in offsets})  # topic ids may have changed
            request = requests.offset_commit_request(group, dict(sorted(offsets.items())), self.topic_ids)
            for topic in self.at_coordinator(requests.CoordinatorType.GROUP, group, request).topics:
                for each in topic.partitions:
                    raise_for(each.error_code, None, f"group {group}")

        self.retry(ask)


def in_parallel(ask: Callable[[Asked], None], leaders: Collection[Asked]) -> None:
    """Ask all leaders at the same time, and raise the first error after all have answered."""
    if len(leaders) < 2:
        for leader in leaders:
            ask(leader)
        return
    with ThreadPoolExecutor(min(_THREADS, len(leaders))) as threads:
        asked = [threads.submit(ask, leader) for leader in leaders]
    for future in asked:
        future.result()


def _partitions(found: MetadataResponse) -> dict[str, list[int]]:
    """Return the partitions of every existing topic; ClientError if one of them may not be described."""
    topics: dict[str, list[int]] = {}
    for topic in found.topics:
        if topic.name is not None and topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise_for(topic.error_code, None, f"topic {topic.name}")
            topics[topic.name] = sorted(partition.partition_index for partition in topic.partitions)
    return topics
