"""Produce requests to the leaders of partitions: records in order and exactly once in each partition.

An idempotent producer numbers the batches of a partition; up to five requests are in flight to a broker.
When one fails, the partition's batches are sent again in the same order, from the first that is not
acknowledged; the broker recognises duplicates. A broker accepts any sequence number of a producer that it
does not know, so the first batch of a partition is sent alone: if it were refused, the second would be
accepted instead.
"""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headrace.client.errors import Unreachable, error_name, raise_for
from headrace.client.wire.connection import NEWEST, Address, Connection, InFlight, NoAnswer
from headrace.client.wire.requests import produce_request
from headrace.client.wire.retry import FIRST_BACKOFF_S, MAX_BACKOFF_S
from headrace.protocol.batch import build_batch
from headrace.protocol.compression import Compression
from headrace.protocol.errors import ErrorCode
from headrace.protocol.fields import Buffer
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest
from headrace.spark.errors import SparkError
from headrace.tables.reader.cluster import ClusterConnections

ACKS_ALL: Final = -1
MOST_IN_FLIGHT: Final = 5  # requests to a broker; more would let a partition's batches swap
TRANSACTION_VERSION_1: Final = 11  # newer Produce requests add partitions to their transaction
REQUEST_BYTES: Final = 4 * 1024 * 1024
WAITING_BYTES: Final = 32 * 1024 * 1024  # added and not acknowledged yet


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerId:
    """The producer id and epoch: a broker appends each sequence number of a producer once."""

    id: int = -1
    epoch: int = -1
    transactional_id: str | None = None


class Sequences(NamedTuple):
    """A producer without records that are not acknowledged, and the next sequence number of partitions."""

    producer: ProducerId
    next: dict[TopicPartition, int]


class EncodedBatch(NamedTuple):
    """Encoded and compressed records of one partition: a record batch without its header."""

    partition: TopicPartition
    body: Buffer
    records: int
    timestamp_ms: int


@dataclass(slots=True, eq=False)
class _Batch:
    data: Buffer
    records: int


@dataclass(slots=True, eq=False)
class _Queue:
    """A partition's batches without an acknowledgement, in order; the first `sent` are in flight."""

    partition: TopicPartition
    batches: deque[_Batch] = field(default_factory=deque)
    sent: int = 0
    depth: int = 1  # how many may be in flight
    leader: Address | None = None  # of the batches in flight
    sequence: int = 0
    attempt: int = 0  # counts rewinds; responses to earlier attempts are ignored
    first_offset: int = -1
    last_offset: int = -1
    waits_s: float = 0.0  # since when a batch is in flight, by time.monotonic; 0: none is
    rests_s: float = 0.0  # the end of the backoff before the next attempt
    delay_s: float = FIRST_BACKOFF_S

    @property
    def is_ready(self) -> bool:
        """Whether a batch may be sent now."""
        return self.sent < min(len(self.batches), self.depth)

    def rewind(self) -> None:
        """Send all batches again, after a backoff that grows with every attempt."""
        now = time.monotonic()
        self.sent = 0
        self.attempt += 1
        self.rests_s = now + self.delay_s
        self.delay_s = min(2 * self.delay_s, MAX_BACKOFF_S)

    def arrived(self, base_offset: int) -> _Batch:
        """Remove the first batch, which is acknowledged, at `base_offset` if that is known."""
        batch = self.batches.popleft()
        self.sent -= 1
        self.depth = MOST_IN_FLIGHT
        self.waits_s = time.monotonic() if self.sent else 0.0
        self.rests_s, self.delay_s = 0.0, FIRST_BACKOFF_S
        if base_offset >= 0:
            if self.first_offset < 0:
                self.first_offset = base_offset
            self.last_offset = base_offset + batch.records - 1
        return batch


@dataclass(slots=True)
class _Leader:
    """A connection and its requests in flight, each with the queues of its batches."""

    connection: Connection
    in_flight: deque[tuple[InFlight, list[tuple[_Queue, int]]]] = field(default_factory=deque)


class BatchProducer:
    """Sends batches, and returns their offsets at the end; for one thread."""

    def __init__(
        self,
        cluster: ClusterConnections,
        *,
        acks: int = ACKS_ALL,
        idempotent: bool = True,
        producer: ProducerId | None = None,  # of an open transaction, whose partitions are known
        before: Sequences | None = None,  # of an idempotent producer that this one continues
        compression: Compression = Compression.NONE,
        timeout_s: float = 120.0,
    ) -> None:
        self._cluster = cluster
        self._acks = acks
        self._compression = compression
        self._timeout_s = timeout_s
        self._queues: dict[TopicPartition, _Queue] = {}
        self._leaders: dict[Address, _Leader] = {}
        self._waiting_bytes = 0
        self._max_version = NEWEST if producer is None else TRANSACTION_VERSION_1
        self._unknown = 0  # queues without an acknowledgement: their leaders do not know the producer yet
        self._before: dict[TopicPartition, int] = {} if before is None else before.next
        self.producer = producer or (ProducerId() if before is None else before.producer)
        if producer is None and before is None and idempotent:
            self.producer = cluster.retry(self._init_producer_id)

    def _init_producer_id(self) -> ProducerId:
        answer = self._cluster.any(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        )
        raise_for(answer.error_code, None, "no producer id")
        return ProducerId(id=answer.producer_id, epoch=answer.producer_epoch)

    def close(self) -> None:
        """Leave the connections to the next task, except those with responses that are still to come."""
        for leader in self._leaders.values():
            if leader.in_flight or self._acks == 0:
                leader.connection.close()
            else:
                self._cluster.release(leader.connection)
        self._leaders.clear()

    # -- adding --------------------------------------------------------------------------------

    def add(self, partition: TopicPartition, body: Buffer, count: int, timestamp_ms: int) -> None:
        """Queue `count` encoded and compressed records; waits while WAITING_BYTES are not acknowledged."""
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = _Queue(partition, sequence=self._before.get(partition, 0))
            if self.producer.id < 0:
                queue.depth = MOST_IN_FLIGHT
            else:
                self._unknown += 1
        data = build_batch(
            body,
            base_offset=0,
            last_offset_delta=count - 1,
            records_count=count,
            base_timestamp=timestamp_ms,
            max_timestamp=timestamp_ms,
            compression=self._compression,
            transactional=self.producer.transactional_id is not None,
            producer_id=self.producer.id,
            producer_epoch=self.producer.epoch,
            base_sequence=queue.sequence if self.producer.id >= 0 else -1,
        )
        queue.sequence = (queue.sequence + count) & 0x7FFFFFFF
        queue.batches.append(_Batch(data, count))
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= REQUEST_BYTES:
            self._send_ready()
        while self._waiting_bytes >= (REQUEST_BYTES if self._unknown else WAITING_BYTES):
            self._progress()

    def sequences(self) -> Sequences:
        """Return what the next producer needs to continue this one, after `flush`."""
        assert not self._waiting_bytes, self._waiting_bytes
        own = {partition: queue.sequence for partition, queue in self._queues.items()}
        return Sequences(self.producer, {**self._before, **own})

    def flush(self) -> dict[TopicPartition, tuple[int, int]]:
        """Wait until all is acknowledged, and return the first and the last offset of each partition."""
        while self._waiting_bytes:
            self._progress()
        return {queue.partition: (queue.first_offset, queue.last_offset) for queue in self._queues.values()}

    # -- sending -------------------------------------------------------------------------------

    def _progress(self) -> None:
        """Send what can be sent, and wait for a response, or for the end of a backoff."""
        self._send_ready()
        for address, leader in list(self._leaders.items()):
            if leader.in_flight:
                self._receive(address, leader)
                return
        rests = min((queue.rests_s for queue in self._queues.values() if queue.batches), default=0.0)
        time.sleep(max(0.0, rests - time.monotonic()))

    def _send_ready(self) -> None:
        """Send as many requests as may be in flight."""
        now = time.monotonic()
        by_leader: dict[Address, list[_Queue]] = {}
        for queue in self._queues.values():
            if queue.is_ready and queue.rests_s <= now:
                queue.waits_s = queue.waits_s or now
                try:
                    # Batches in flight are answered before the next ones go to another leader.
                    if not queue.sent or queue.leader is None:
                        queue.leader = self._cluster.leader(queue.partition)
                    by_leader.setdefault(queue.leader, []).append(queue)
                except Unreachable as error:
                    self._retry(queue, str(error))
        for address, queues in by_leader.items():
            try:
                self._send_to(address, queues)
            except Unreachable as error:
                self._lose(address, queues, str(error))

    def _send_to(self, address: Address, queues: list[_Queue]) -> None:
        leader = self._leaders.get(address)
        if leader is None:
            leader = self._leaders[address] = _Leader(self._cluster.connect(address))
        while len(leader.in_flight) < MOST_IN_FLIGHT:
            chosen = list(_one_each(queues))
            if not chosen:
                return
            request = produce_request(
                {queue.partition: queue.batches[queue.sent].data for queue in chosen},
                self._cluster.topic_ids,
                acks=self._acks,
                timeout_ms=int(min(self._timeout_s, 30.0) * 1000),
                transactional_id=self.producer.transactional_id,
            )
            version = leader.connection.version(request, max_version=self._max_version)
            asked = leader.connection.send(request, version)
            for queue in chosen:
                queue.sent += 1
            if self._acks == 0:
                for queue in chosen:
                    self._arrived(queue, -1)
            else:
                leader.in_flight.append((asked, [(queue, queue.attempt) for queue in chosen]))

    # -- answers -------------------------------------------------------------------------------

    def _receive(self, address: Address, leader: _Leader) -> None:
        asked, chosen = leader.in_flight[0]
        try:
            response = leader.connection.receive(asked)
        except NoAnswer as error:
            self._lose(address, [], str(error))
            return
        leader.in_flight.popleft()
        answers = {
            (topic.name or topic.topic_id, partition_response.index): partition_response
            for topic in response.responses
            for partition_response in topic.partition_responses
        }
        for queue, attempt in chosen:
            topic, index = queue.partition
            answer = answers.get((topic, index)) or answers.get((self._cluster.topic_id(topic), index))
            if queue.attempt != attempt:
                continue
            if answer is None:
                self._retry(queue, "the broker's response does not mention the partition")
                continue
            code = answer.error_code
            said = answer.error_message or error_name(code)
            if code in {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}:
                self._arrived(queue, answer.base_offset)
            elif ErrorCode(code).retriable:
                self._retry(queue, said)
            else:
                raise SparkError(f"{queue.partition}: {_advice(code, said, queue.batches[0])}")

    def _arrived(self, queue: _Queue, base_offset: int) -> None:
        if queue.depth < MOST_IN_FLIGHT:
            self._unknown -= 1
        self._waiting_bytes -= len(queue.arrived(base_offset).data)

    def _lose(self, address: Address, queues: list[_Queue], why: str) -> None:
        """Close a connection that gave no answer, and send its batches again, to the new leader."""
        leader = self._leaders.pop(address, None)
        lost = {id(queue): queue for queue in queues}
        if leader is not None:
            leader.connection.close()
            on_their_way = (each for _, chosen in leader.in_flight for each in chosen)
            lost |= {id(queue): queue for queue, attempt in on_their_way if queue.attempt == attempt}
        for queue in lost.values():
            self._retry(queue, why)

    def _retry(self, queue: _Queue, why: str) -> None:
        if time.monotonic() - queue.waits_s > self._timeout_s:
            raise SparkError(f"{queue.partition}: not written for {self._timeout_s:g} s: {why}")
        self._cluster.forget_leader(queue.partition)
        queue.rewind()


def _one_each(queues: list[_Queue]) -> Iterator[_Queue]:
    """Yield queues with a batch to send, one batch each, as many as fit into a request."""
    size = 0
    for queue in queues:
        if queue.is_ready:
            size += len(queue.batches[queue.sent].data)
            if size > REQUEST_BYTES and size > len(queue.batches[queue.sent].data):
                return
            yield queue


def _advice(code: int, said: str, batch: _Batch) -> str:
    match code:
        case ErrorCode.MESSAGE_TOO_LARGE | ErrorCode.RECORD_LIST_TOO_LARGE if batch.records > 1:
            return (
                f"{said}: batches of {len(batch.data)} bytes are larger than the topic's max.message.bytes "
                "allows; raise that, or set kafka.batch.size to less"
            )
        case ErrorCode.MESSAGE_TOO_LARGE | ErrorCode.RECORD_LIST_TOO_LARGE:
            return (
                f"{said}: a record is larger than the topic's max.message.bytes allows; "
                "raise that, or set kafka.compression.type"
            )
        case ErrorCode.INVALID_RECORD:
            return (
                f"{said}: the topic refuses these records; a compacted topic wants every record to have a key"
            )
        case ErrorCode.TOPIC_AUTHORIZATION_FAILED | ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return f"{said}: this user may not write there"
        case _:
            return f"the broker says {said}"
