"""The client of the fixtures: it creates topics, writes records, and reads all records of a topic."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from headrace.client.errors import NoSuchTopic, Retriable, TopicExists, Unreachable, raise_for
from headrace.client.records.one_by_one import Headers, Receipt, Record, Writer
from headrace.client.wire import requests
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Address
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.protocol.batch import BatchHeader, read_batch
from headrace.protocol.control_records import ControlRecordType, decode_control_key
from headrace.protocol.errors import ErrorCode
from headrace.protocol.fields import Buffer
from headrace.protocol.ids import TopicPartition
from headrace.protocol.records import decode_batch
from headrace.protocol.schema.fetch import PartitionData
from headrace.protocol.schema.metadata import MetadataResponseTopic
from headrace.testing.faults import OWN_CLIENT_ID

TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.01
_FETCH_BYTES: Final = 64 * 1024 * 1024

Text = str | bytes | None
T = TypeVar("T")


class NotYet(Retriable):
    """The cluster is not yet in the expected state: a leader is missing, or has just changed."""


def until(what: str, read: Callable[[], T], timeout_s: float) -> T:
    """Return what `read` returns once it neither raises NotYet nor loses its broker; or TimeoutError."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return read()
        except Unreachable as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {timeout_s:g} s: {error}") from error
        time.sleep(_POLL_S)


class FixtureClient:
    """A client of one cluster, over the wire as any other; no fault applies to it."""

    def __init__(self, target: ConnectionSettings) -> None:
        self._target = target

    def connected(self, answer_s: float = TIMEOUT_S) -> Brokers:
        """Return connections to the brokers; a broker without an answer within `answer_s` counts as gone."""
        return Brokers(self._target, client_id=OWN_CLIENT_ID, answer_s=answer_s)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replicas: int | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic, and return when every broker knows its leaders."""
        values = {key: str(value) for key, value in (configs or {}).items()}
        request = requests.create_topic_request(
            name, partitions=partitions, replicas=replicas, configs=values
        )
        with self.connected() as brokers:
            (made,) = brokers.any(request).topics
            if made.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
                raise TopicExists(name)
            raise_for(made.error_code, made.error_message, name)
            until(f"leaders of {name}", lambda: _check_all_know(brokers, name), TIMEOUT_S)

    def write(
        self, topic: str, values: Sequence[Text], key: Text, headers: Headers, partition: int | None
    ) -> Receipt:
        """Write a record for each value, and return when all are acknowledged."""
        with self.connected() as brokers:
            until(f"leaders of {topic}", lambda: topic_at(brokers, None, topic, create=True), TIMEOUT_S)
        options: dict[str, str | int] = {"client.id": OWN_CLIENT_ID, "linger.ms": 0}
        writer = Writer(self._target, topic, options)
        for value in values:
            writer.write(Record(value=_bytes(value), key=_bytes(key), headers=headers, partition=partition))
        return writer.flush()

    def records(
        self, topic: str, count: int | None, timeout_s: float, *, read_committed: bool = False
    ) -> list[Record]:
        """Return all records by partition and offset, once there are `count` of them.

        With `read_committed`, records of open and of aborted transactions are left out.
        """

        def enough() -> list[Record]:
            try:
                found = list(_read_all(brokers, topic, read_committed=read_committed))
            except NoSuchTopic as error:
                if count:
                    raise NotYet(str(error)) from error
                raise
            if len(found) < (count or 0):
                raise NotYet(f"there are {len(found)}")
            return found

        with self.connected() as brokers:
            return until(f"{count or 'the'} records of {topic}", enough, timeout_s)


def _bytes(text: Text) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


def _check_all_know(brokers: Brokers, name: str) -> None:
    """Raise NotYet unless every broker knows the topic."""
    for broker_id, address in requests.addresses_by_id(brokers.any(requests.metadata_request())).items():
        try:
            topic_at(brokers, address, name)
        except NoSuchTopic as error:
            raise NotYet(f"broker {broker_id} does not know the topic") from error


def topic_at(
    brokers: Brokers, address: Address | None, name: str, *, create: bool = False
) -> MetadataResponseTopic:
    """Return a topic as one broker, or any, sees it; NotYet if a partition of it has no leader.

    Raise NoSuchTopic if it does not exist, unless `create` lets the broker create it.
    """
    request = requests.metadata_request([name], create=create)
    response = brokers.any(request) if address is None else brokers.at(address, request)
    topic: MetadataResponseTopic = response.topics[0]
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise NoSuchTopic(name)
    alive = {broker.node_id for broker in response.brokers}
    leaderless = [each.partition_index for each in topic.partitions if each.leader_id not in alive]
    if topic.error_code or leaderless or not topic.partitions:
        raise NotYet(f"{name} has no leader for its partitions {leaderless}")
    return topic


def _read_all(brokers: Brokers, name: str, *, read_committed: bool) -> Iterator[Record]:
    """Yield every record of a topic, by partition and offset."""
    topic = topic_at(brokers, None, name)
    addresses = requests.addresses_by_id(brokers.any(requests.metadata_request()))
    for index, leader_id in sorted((each.partition_index, each.leader_id) for each in topic.partitions):
        leader = addresses.get(leader_id)
        if leader is None:
            raise NotYet(f"broker {leader_id} is gone")
        yield from _read_partition(brokers, leader, topic, index, read_committed=read_committed)


def _read_partition(
    brokers: Brokers, leader: Address, topic: MetadataResponseTopic, index: int, *, read_committed: bool
) -> Iterator[Record]:
    partition = TopicPartition(topic.name or "", index)
    listed = requests.listed_offsets(
        brokers.at(leader, requests.list_offsets_request({partition: requests.EARLIEST}))
    )[partition]
    _check(listed.error_code, partition)
    offset = int(listed.offset)
    while True:
        request = requests.fetch_request(
            partition, offset, topic_id=topic.topic_id, max_bytes=_FETCH_BYTES, read_committed=read_committed
        )
        data: PartitionData = brokers.at(leader, request).responses[0].partitions[0]
        _check(data.error_code, partition)
        if not data.records:
            return
        aborted = _Aborted(data)
        position = 0
        while position < len(data.records):
            header = read_batch(data.records, position)
            batch = memoryview(data.records)[position : position + header.size]
            position += header.size
            is_read = not aborted.includes(header, batch) and not header.is_control
            for each in decode_batch(batch, header) if is_read else ():
                if each.offset >= offset:  # a batch is sent whole, also if it begins earlier
                    yield Record(
                        value=each.value,
                        key=each.key,
                        headers=each.headers,
                        partition=index,
                        timestamp_ms=each.timestamp,
                        topic=partition.topic,
                        offset=each.offset,
                    )
        offset = header.next_offset


class _Aborted:
    """The aborted transactions of a Fetch response, which has none if it is read_uncommitted."""

    def __init__(self, data: PartitionData) -> None:
        self._first_offsets: dict[int, list[int]] = {}  # by producer id, in their order
        for each in sorted(data.aborted_transactions or (), key=lambda each: each.first_offset):
            self._first_offsets.setdefault(each.producer_id, []).append(each.first_offset)

    def includes(self, header: BatchHeader, batch: Buffer) -> bool:
        """Return whether the next batch of the response is part of an aborted transaction."""
        first_offsets = self._first_offsets.get(header.producer_id)
        if not first_offsets or not header.is_transactional or header.base_offset < first_offsets[0]:
            return False
        if header.is_control:
            (marker,) = decode_batch(batch, header)
            if decode_control_key(marker.key or b"") is ControlRecordType.ABORT:
                first_offsets.pop(0)
        return True


def _check(code: int, partition: TopicPartition) -> None:
    if code:
        raise NotYet(f"{partition}: {ErrorCode(code).name}")
