"""Writing the markers of prepared transactions: each to the leader of its partition, until all are written.

A coordinator hands a transaction over when its outcome is committed, and this component completes it in the
coordinator's log when every partition has its marker. Nothing is kept here that could be lost: the
transactions that a coordinator finds prepared when it is loaded are handed over again, and a marker that is
written twice changes nothing.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from headrace.broker.coordinators.shard import CoordinatorShard
from headrace.broker.coordinators.transaction_verification import AskBroker
from headrace.broker.image import ClusterImage
from headrace.coordinators.errors import CoordinatorError
from headrace.coordinators.transaction.coordinator import TransactionCoordinator
from headrace.coordinators.transaction.state import Transaction
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema import write_txn_markers as api

WRITE_MARKERS_VERSIONS: Final = range(2, 3)
MAX_MARKERS: Final = 100  # of one request; more would hold the event loops of both brokers for too long
_COMPLETED_TOGETHER: Final = 16  # transactions in one turn of the event loop: each writes a record
_TIMEOUT_S: Final = 30.0  # for the leader's response: it waits for its replicas
_RETRY_S: Final = 0.05

_WRITTEN: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.INVALID_PRODUCER_EPOCH,  # a later epoch has been written: the transaction has ended there
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)

logger = logging.getLogger(__name__)

TransactionShard = CoordinatorShard[TransactionCoordinator]


@dataclass(slots=True, eq=False)
class _Ending:
    """A prepared transaction, and the partitions that have no marker yet."""

    shard: TransactionShard
    transaction: Transaction
    remaining: set[TopicPartition]


_Queue = dict[_Ending, list[TopicPartition]]


class TransactionMarkers:
    """Queues of markers, one for each broker, with one request to each broker at a time."""

    def __init__(
        self, image: ClusterImage, ask: AskBroker, loop: Callable[[], asyncio.AbstractEventLoop]
    ) -> None:
        self._image = image
        self.ask = ask
        self._loop = loop
        self._queues: dict[int, _Queue] = defaultdict(dict)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._stopped = False

    def write(self, shard: TransactionShard, transaction: Transaction) -> None:
        """Write the markers of a transaction whose outcome is committed, then complete the transaction."""
        ending = _Ending(shard, transaction, set(transaction.partitions))
        self._enqueue(ending, transaction.partitions)
        if not transaction.partitions:
            self._complete(ending)

    @property
    def queued(self) -> int:
        """How many markers wait to be sent."""
        return sum(len(partitions) for queue in self._queues.values() for partitions in queue.values())

    def stop(self) -> None:
        self._stopped = True
        for task in self._tasks.values():
            task.cancel()

    def _enqueue(self, ending: _Ending, partitions: Iterable[TopicPartition]) -> None:
        if self._stopped or not ending.shard.is_current:
            return  # the next coordinator writes them
        unavailable = []
        for partition in partitions:
            topic = self._image.topics.get(partition.topic)
            if topic is None or partition.partition not in topic.replicas:
                self._written(ending, [partition])  # the topic was deleted
                continue
            state = topic.states.get(partition.partition)
            if state is None or state.leader not in self._image.brokers:
                unavailable.append(partition)
                continue
            self._queues[state.leader].setdefault(ending, []).append(partition)
            self._ensure_sending(state.leader)
        if unavailable:
            self._retry(ending, unavailable)

    def _retry(self, ending: _Ending, partitions: Iterable[TopicPartition]) -> None:
        if not self._stopped:
            self._loop().call_later(_RETRY_S, self._enqueue, ending, list(partitions))

    def _ensure_sending(self, broker_id: int) -> None:
        if broker_id not in self._tasks and not self._stopped:
            task = self._loop().create_task(self._send_all(broker_id))
            self._tasks[broker_id] = task
            task.add_done_callback(lambda _: self._sent_all(broker_id))

    def _sent_all(self, broker_id: int) -> None:
        """Begin again if markers were queued after the task had found its queue empty."""
        del self._tasks[broker_id]
        if self._queues[broker_id]:
            self._ensure_sending(broker_id)

    async def _send_all(self, broker_id: int) -> None:
        await asyncio.sleep(0)  # markers of the same moment go out together
        while sent := self._take(broker_id):
            try:
                await self._send(broker_id, sent)
            except Exception as error:  # the other transactions must not wait for these
                expected = isinstance(error, PeerGone)
                logger.log(
                    logging.INFO if expected else logging.ERROR,
                    "transactions: markers for broker %d are retried: %s",
                    broker_id,
                    error,
                    exc_info=None if expected else error,
                )
                for ending, partitions in sent.items():
                    self._retry(ending, partitions)

    def _take(self, broker_id: int) -> _Queue:
        """Remove and return up to MAX_MARKERS markers, without those of coordinators that have moved."""
        queue = self._queues[broker_id]
        taken: _Queue = {}
        room = MAX_MARKERS
        while queue and room:
            ending = next(iter(queue))
            partitions = queue.pop(ending)
            if not ending.shard.is_current:
                continue  # the next coordinator writes them
            if len(partitions) > room:
                queue[ending] = partitions[room:]
            taken[ending] = partitions[:room]
            room -= len(taken[ending])
        return taken

    async def _send(self, broker_id: int, sent: _Queue) -> None:
        request = api.WriteTxnMarkersRequest(
            markers=[_marker(ending, partitions) for ending, partitions in sent.items()]
        )
        response: api.WriteTxnMarkersResponse = await self.ask(
            broker_id, request, WRITE_MARKERS_VERSIONS, timeout_s=_TIMEOUT_S
        )
        codes = {
            (marker.producer_id, topic.name, result.partition_index): ErrorCode(result.error_code)
            for marker in response.markers
            for topic in marker.topics
            for result in topic.partitions
        }
        for number, (ending, partitions) in enumerate(sent.items(), start=1):
            producer_id, missing = ending.transaction.producer_id, ErrorCode.UNKNOWN_SERVER_ERROR
            self._note(ending, {id_: codes.get((producer_id, *id_), missing) for id_ in partitions})
            if number % _COMPLETED_TOGETHER == 0:
                await asyncio.sleep(0)

    def _note(self, ending: _Ending, codes: dict[TopicPartition, ErrorCode]) -> None:
        """Retry the markers that were refused, and complete the transaction if none is left."""
        failed = {partition: code for partition, code in codes.items() if code not in _WRITTEN}
        if failed:
            logger.info(
                "transactions: markers of %.100r are retried: %s",
                ending.transaction.transactional_id,
                ", ".join(f"{partition} ({code.name})" for partition, code in list(failed.items())[:5]),
            )
            self._retry(ending, failed)
        if len(failed) < len(codes):
            self._written(ending, codes.keys() - failed.keys())

    def _written(self, ending: _Ending, partitions: Iterable[TopicPartition]) -> None:
        ending.remaining.difference_update(partitions)
        if not ending.remaining:
            self._complete(ending)

    def _complete(self, ending: _Ending) -> None:
        """Complete the transaction in the coordinator's log; retry while that has too few replicas."""
        if not ending.shard.is_current or self._stopped:
            return  # the next coordinator writes the markers again
        try:
            ending.shard.write(lambda machine, now_ms: machine.complete(ending.transaction, now_ms))
        except CoordinatorError as error:
            logger.info("transactions: %.100r is retried: %s", ending.transaction.transactional_id, error)
            self._loop().call_later(_RETRY_S, self._complete, ending)


def _marker(ending: _Ending, partitions: Iterable[TopicPartition]) -> api.WritableTxnMarker:
    transaction = ending.transaction
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, partition in partitions:
        topics[topic].append(partition)
    return api.WritableTxnMarker(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_result=transaction.state.is_commit,
        topics=[api.WritableTxnMarkerTopic(name=name, partition_indexes=ids) for name, ids in topics.items()],
        coordinator_epoch=ending.shard.leader_epoch,
        transaction_version=transaction.client_version,
    )
