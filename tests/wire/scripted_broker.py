"""Brokers that do as they are told with what they are sent, over real sockets: for what real ones do rarely.

They keep one topic between them, and take numbered batches as a real broker does.
"""

import socketserver
import threading
from collections import Counter, deque
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from struct import Struct
from types import TracebackType
from typing import Any, Final, Self

from headrace.protocol.api import ApiKey, decode_request, encode_response
from headrace.protocol.batch import BatchHeader, assign_offset, read_batch
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.frame import encode_frame
from headrace.protocol.headers import decode_request_header, encode_response_header
from headrace.protocol.records import decode_batch
from headrace.protocol.schema.api_versions import ApiVersion, ApiVersionsResponse
from headrace.protocol.schema.init_producer_id import InitProducerIdResponse
from headrace.protocol.schema.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.protocol.schema.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from headrace.storage.producers.state import ProducerState

TOPIC: Final = "scripted"
TOPIC_ID: Final = bytes(range(16))
PRODUCER_ID: Final = 4711
VERSIONS: Final = {
    ApiKey.PRODUCE: (3, 13),
    ApiKey.METADATA: (0, 12),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
}
_SIZE: Final = Struct(">i")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What becomes of a Produce request."""

    appends: bool = True
    code: ErrorCode = ErrorCode.NONE  # of the answer
    message: str | None = None
    hangs_up: bool = False  # instead of an answer
    says_nothing: bool = False  # about any partition
    held_for: int = 0  # the answer waits until so many more requests have come
    new_leader: int | None = None  # takes over before the request is looked at


FINE: Final = Fate()


def refused(code: ErrorCode, message: str | None = None, *, held_for: int = 0) -> Fate:
    return Fate(appends=False, code=code, message=message, held_for=held_for)


@dataclass(slots=True)
class Partition:
    values: list[bytes | None] = field(default_factory=list)
    producers: dict[int, ProducerState] = field(default_factory=dict)

    def append(self, batch: bytearray, header: BatchHeader) -> int:
        """The offset of the batch, which may be there already; KafkaError if it is out of order."""
        if header.has_producer:
            state = self.producers.setdefault(header.producer_id, ProducerState(header.producer_id))
            earlier = state.check(header)
            if earlier is not None:
                return earlier.base_offset
        base_offset = len(self.values)
        assign_offset(batch, 0, base_offset=base_offset, leader_epoch=0)
        self.values += [record.value for record in decode_batch(batch, header)]
        if header.has_producer:
            state.record(read_batch(batch))
        return base_offset


class ScriptedBrokers:
    """`fates` are those of the Produce requests as they come, whoever gets them; the rest is fine."""

    def __init__(
        self,
        fates: Iterable[Fate] = (),
        *,
        brokers: int = 1,
        partitions: int = 1,
        introductions: Iterable[ErrorCode] = (),
    ) -> None:
        self.fates = deque(fates)
        self.introductions = deque(introductions)  # how InitProducerId is answered, before it succeeds
        self.partitions = [Partition() for _ in range(partitions)]
        self.asked: Counter[ApiKey] = Counter()
        self.unanswered = 0
        self.most_unanswered = 0
        self._leader = 0
        self._turn = threading.Lock()
        self._servers = [_Server(self, number) for number in range(brokers)]
        self._threads = [
            threading.Thread(target=each.serve_forever, args=(0.01,), daemon=True) for each in self._servers
        ]

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{each.server_address[1]}" for each in self._servers)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as closing:
            for server, thread in zip(self._servers, self._threads, strict=True):
                closing.callback(server.server_close)  # waits for those who still talk to it
                closing.callback(thread.join)
                closing.callback(server.shutdown)

    # -- answers -------------------------------------------------------------------------------

    def answer(self, number: int, key: ApiKey, request: Any) -> tuple[Any, Fate]:
        """The response of broker `number`, and what becomes of it."""
        with self._turn:
            self.asked[key] += 1
            if key != ApiKey.PRODUCE:
                return self._tell(key), FINE
            fate = self.fates.popleft() if self.fates else FINE
            if fate.new_leader is not None:
                self._leader = fate.new_leader
            return self._produce(number, request, fate), fate

    def count(self, change: int) -> None:
        with self._turn:
            self.unanswered += change
            self.most_unanswered = max(self.most_unanswered, self.unanswered)

    def _tell(self, key: ApiKey) -> Any:
        if key == ApiKey.API_VERSIONS:
            known = [
                ApiVersion(api_key=each, min_version=low, max_version=high)
                for each, (low, high) in VERSIONS.items()
            ]
            return ApiVersionsResponse(error_code=0, api_keys=known)
        if key == ApiKey.INIT_PRODUCER_ID:
            code = self.introductions.popleft() if self.introductions else ErrorCode.NONE
            return InitProducerIdResponse(error_code=code, producer_id=PRODUCER_ID, producer_epoch=0)
        return self._metadata()

    def _metadata(self) -> MetadataResponse:
        nodes = [
            MetadataResponseBroker(node_id=number, host="127.0.0.1", port=each.server_address[1])
            for number, each in enumerate(self._servers)
        ]
        partitions = [
            MetadataResponsePartition(
                partition_index=index, leader_id=self._leader, replica_nodes=(), isr_nodes=()
            )
            for index in range(len(self.partitions))
        ]
        topic = MetadataResponseTopic(name=TOPIC, topic_id=TOPIC_ID, partitions=partitions)
        return MetadataResponse(brokers=nodes, topics=[topic])

    def _produce(self, number: int, request: Any, fate: Fate) -> ProduceResponse:
        answers = [
            self._append(number, each.index, bytearray(each.records), fate)
            for topic in request.topic_data
            for each in topic.partition_data
        ]
        if fate.says_nothing:
            return ProduceResponse(responses=[])
        return ProduceResponse(
            responses=[TopicProduceResponse(name=TOPIC, topic_id=TOPIC_ID, partition_responses=answers)]
        )

    def _append(self, number: int, index: int, batch: bytearray, fate: Fate) -> PartitionProduceResponse:
        code, message, base_offset = fate.code, fate.message, -1
        if number != self._leader:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif fate.appends:
            try:
                base_offset = self.partitions[index].append(batch, read_batch(batch))
            except KafkaError as error:
                code, message = error.code, str(error)
        return PartitionProduceResponse(
            index=index, error_code=code, error_message=message, base_offset=base_offset
        )


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = False

    def __init__(self, brokers: ScriptedBrokers, number: int) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.brokers = brokers
        self.number = number


class _Conversation(socketserver.StreamRequestHandler):
    """One connection: requests are looked at in their order, and answered in it."""

    server: _Server

    def handle(self) -> None:
        self._held: deque[tuple[int, bytes]] = deque()  # how many requests each waits for, and the answer
        while (size := self.rfile.read(_SIZE.size)) and self._serve(self.rfile.read(*_SIZE.unpack(size))):
            pass
        self.server.brokers.count(-len(self._held))

    def _serve(self, frame: bytes) -> bool:
        header, body = decode_request_header(memoryview(frame))
        key, version = ApiKey(header.request_api_key), header.request_api_version
        request = decode_request(key, version, body)
        response, fate = self.server.brokers.answer(self.server.number, key, request)
        if fate.hangs_up:
            return False
        if key == ApiKey.PRODUCE and request.acks == 0:
            return True
        head = encode_response_header(key, version, header.correlation_id)
        answer = b"".join(encode_frame(head, encode_response(key, version, response)))
        self._held = deque((left - 1, earlier) for left, earlier in self._held)
        self._held.append((fate.held_for, answer))
        self.server.brokers.count(1)
        while self._held and self._held[0][0] <= 0:
            self.wfile.write(self._held.popleft()[1])
            self.server.brokers.count(-1)
        return True
