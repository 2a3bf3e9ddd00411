"""WriteTxnMarkers (key 27), v1-v2.

Behaviour: appends the markers that end transactions, and answers when all are committed. Transaction
           coordinators send it, and administrators who abort a hanging transaction. On __consumer_offsets the
           offsets of the transaction take effect, or are dropped.
Versions:  v1 flexible; v2 the transaction version, with which a marker of an earlier transaction is refused.
"""

import asyncio
from typing import Any, Final

from headrace.broker.replicas.purgatory import Commit
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.slices import Steps, Turns, each, in_slices
from headrace.broker.translate import FAILURES, error_code
from headrace.coordinators.decision import Producer
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.schema import write_txn_markers as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation, Permission, ResourceType
from headrace.storage.topics import OFFSETS_TOPIC

_TIMEOUT_S = 30.0  # for the replicas
_NOT_READY = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)

_ALTER: Final = Permission(Operation.ALTER, ResourceType.CLUSTER)
_CLUSTER_ACTION: Final = Permission(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)

_Pending = ErrorCode | Commit | asyncio.Future[Any]


@handles(ApiKey.WRITE_TXN_MARKERS, range(1, 3), requires=(_ALTER, _CLUSTER_ACTION))
async def write_txn_markers(
    request: api.WriteTxnMarkersRequest, context: Context
) -> api.WriteTxnMarkersResponse:
    turns = Turns()
    pending: list[list[list[_Pending]]] = []
    waiting: set[Commit] = set()
    for marker in request.markers:
        topics: list[list[_Pending]] = []
        await turns.next()
        for topic in marker.topics:
            partitions = []
            await turns.next()
            for index in topic.partition_indexes:
                commit = _append(marker, topic.name, index, context)
                partitions.append(commit)
                if not isinstance(commit, ErrorCode):
                    waiting.add(commit)
                await turns.next()
            topics.append(partitions)
        pending.append(topics)
    if waiting:
        await asyncio.wait(waiting, timeout=_TIMEOUT_S)
    markers = await in_slices(_results(request, pending))
    return api.WriteTxnMarkersResponse(markers=markers)


def _results(
    request: api.WriteTxnMarkersRequest, pending: list[list[list[_Pending]]]
) -> Steps[list[api.WritableTxnMarkerResult]]:
    markers = []
    for marker, of_topics in zip(request.markers, pending, strict=True):
        topics = []
        yield
        for topic, of_partitions in zip(marker.topics, of_topics, strict=True):
            yield
            outcomes = zip(topic.partition_indexes, of_partitions, strict=True)
            partitions = yield from each(_result, outcomes)
            topics.append(api.WritableTxnMarkerTopicResult(name=topic.name, partitions=partitions))
        markers.append(api.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
    return markers


def _result(outcome: tuple[int, _Pending]) -> api.WritableTxnMarkerPartitionResult:
    index, pending = outcome
    code: ErrorCode = ErrorCode.NONE
    if isinstance(pending, ErrorCode):
        code = pending
    elif not pending.done():
        code = ErrorCode.REQUEST_TIMED_OUT
    elif isinstance(error := pending.exception() or pending.result(), KafkaError):
        code = _translated(error_code(error))
    return api.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)


def _append(marker: api.WritableTxnMarker, topic: str, index: int, context: Context) -> _Pending:
    """Append a marker; return its commit, or the error code if it is refused or committed already."""
    broker = context.broker
    producer = Producer(marker.producer_id, marker.producer_epoch)
    try:
        if not context.may(_ALTER):
            context.require(_CLUSTER_ACTION)
        if topic == OFFSETS_TOPIC:
            return broker.groups.shard_of(index).end_transaction(
                producer,
                commit=marker.transaction_result,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
        _, commit = broker.partition(topic, index).append_marker(
            producer,
            commit=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
        )
    except FAILURES as error:
        return _translated(error_code(error))
    return ErrorCode.NONE if commit is None else commit


def _translated(code: ErrorCode) -> ErrorCode:
    """Return a code with which transaction coordinators retry if the group coordinator is not ready."""
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if code in _NOT_READY else code
