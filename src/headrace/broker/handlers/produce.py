"""Produce (key 0), v3-v13.

Behaviour: acks=1 is answered when the batch is in the leader's log, acks=-1 when all in sync have it.
           acks=0 gets no reply, and an error closes the connection, so that the client looks for the
           leader again. Topics that are compacted, have a compression or a rule about schemas, or are
           validated have their records read, in threads: every invalid record is named, and a batch of more
           than can be read is MESSAGE_TOO_LARGE.
Versions:  v3 record batches, transactions; v5 log start offset; v8 per-record errors; v9 flexible; v10 new
           leaders in replies (not sent yet); v13 topics by id.
Not yet:   transactions, quotas.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from headrace.broker.dispatch import Context, HangUp, Reply, handles
from headrace.broker.errors import TimedOut, UnknownTopicId
from headrace.broker.inspections import Outcome
from headrace.broker.partition import Partition
from headrace.broker.purgatory import Commit
from headrace.broker.requirements import on_topics, on_transactional_ids
from headrace.broker.slices import STEP, Steps
from headrace.broker.translate import FAILURES, Failure, error_code, error_message
from headrace.controller.errors import InvalidRequest
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.fields import Buffer
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from headrace.security.authorization import Operation
from headrace.storage.errors import InvalidTopic, StorageError
from headrace.storage.topics import INTERNAL_TOPICS

BY_ID = 13
AT_ONCE = 256  # topics, and partitions, of one request
_ALL = -1
_ACKS = (_ALL, 0, 1)


@handles(
    ApiKey.PRODUCE,
    range(3, 14),
    requires=(
        on_topics(Operation.WRITE, lambda request: request.topic_data),
        on_transactional_ids(
            Operation.WRITE, lambda request: [request.transactional_id] if request.transactional_id else ()
        ),
    ),
)
def produce(
    request: ProduceRequest, context: Context
) -> ProduceResponse | Awaitable[Reply] | Steps[ProduceResponse | Awaitable[Reply] | None] | None:
    """Append every batch, or put it in line, in order, before returning; what is returned waits for the acks.

    Batches whose records have to be read wait in the line of their partition (see `broker.inspections`).
    """
    topics = request.topic_data
    if len(topics) > AT_ONCE or sum(len(topic.partition_data) for topic in topics) > AT_ONCE:
        return _in_steps(request, context)
    appends = _Appends([], [])
    replies = [_topic(topic, request.acks, context, appends) for topic in topics]
    return _appended(replies, appends, request, context)


def _in_steps(request: ProduceRequest, context: Context) -> Steps[ProduceResponse | Awaitable[Reply] | None]:
    """As `produce`, for requests that name many partitions; most of those are none of this broker's."""
    appends = _Appends([], [])
    topics = []
    for topic in request.topic_data:
        yield
        replies: list[PartitionProduceResponse] = []
        for first in range(0, len(topic.partition_data), STEP):
            yield
            some = topic.partition_data[first : first + STEP]
            _append_each(topic, some, request.acks, context, appends, replies=replies)
        topics.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=replies)
        )
    return _appended(topics, appends, request, context)


def _appended(
    topics: list[TopicProduceResponse], appends: "_Appends", request: ProduceRequest, context: Context
) -> ProduceResponse | Awaitable[Reply] | None:
    if appends.in_line:
        return _answer_later(topics, appends, request, context)
    return _answer(topics, appends.uncommitted, request, context)


class _Appends(NamedTuple):
    """What a request has to wait for."""

    in_line: "list[_InLine]"
    uncommitted: "list[_Waiting]"


class _InLine(NamedTuple):
    """A batch whose records are being read; its reply belongs in `replies` at `place`."""

    done: "asyncio.Future[PartitionProduceResponse]"
    replies: list[PartitionProduceResponse]
    place: int


def _answer(
    replies: list[TopicProduceResponse], waiting: "list[_Waiting]", request: ProduceRequest, context: Context
) -> ProduceResponse | Awaitable[ProduceResponse] | None:
    if waiting:
        return _wait(replies, waiting, request.timeout_ms, context.broker.loop)
    if request.acks != 0:
        return ProduceResponse(responses=replies)
    for refused in (each for topic in replies for each in topic.partition_responses if each.error_code):
        raise HangUp(f"a Produce with acks=0 failed: {refused.error_message}")
    return None


async def _answer_later(
    replies: list[TopicProduceResponse], appends: _Appends, request: ProduceRequest, context: Context
) -> Reply:
    for each in appends.in_line:
        each.replies[each.place] = await each.done
    answer = _answer(replies, appends.uncommitted, request, context)
    return await answer if inspect.isawaitable(answer) else answer


class _Waiting(NamedTuple):
    """A batch that is in the log and not committed yet, with the reply that says it is."""

    done: Commit
    reply: PartitionProduceResponse


async def _wait(
    replies: list[TopicProduceResponse],
    waiting: list[_Waiting],
    timeout_ms: int,
    loop: asyncio.AbstractEventLoop,
) -> ProduceResponse:
    """Say what became of each batch, when that is known or the client's patience ends."""
    timer = loop.call_later(max(timeout_ms, 0) / 1000, _give_up, waiting)
    try:
        errors = [(each.reply, await each.done) for each in waiting]
    finally:
        timer.cancel()
    refused = {id(reply): _refused(reply.index, error) for reply, error in errors if error is not None}
    return _said(replies, refused) if refused else ProduceResponse(responses=replies)


def _give_up(waiting: list[_Waiting]) -> None:
    late = TimedOut("not all replicas in sync have it")
    for each in waiting:
        if not each.done.done():
            each.done.set_result(late)


def _said(
    replies: list[TopicProduceResponse], refused: dict[int, PartitionProduceResponse]
) -> ProduceResponse:
    """The replies with those in `refused` in place of what was hoped for."""
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[refused.get(id(each), each) for each in topic.partition_responses],
            )
            for topic in replies
        ]
    )


def _topic(topic: TopicProduceData, acks: int, context: Context, appends: _Appends) -> TopicProduceResponse:
    replies: list[PartitionProduceResponse] = []
    _append_each(topic, topic.partition_data, acks, context, appends, replies=replies)
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=replies)


def _append_each(
    topic: TopicProduceData,
    batches: Sequence[PartitionProduceData],
    acks: int,
    context: Context,
    appends: _Appends,
    *,
    replies: list[PartitionProduceResponse],
) -> None:
    """Append these batches of a topic and add what is said of each to `replies`."""
    name, problem = topic.name, None
    if context.version >= BY_ID:
        try:
            name = context.broker.topic_name(topic.topic_id)
        except UnknownTopicId as error:
            problem = error
    for data in batches:
        if problem is not None:
            replies.append(_refused(data.index, problem))
            continue
        reply = _append_or_wait(name, data, acks, context, appends)
        if isinstance(reply, asyncio.Future):
            appends.in_line.append(_InLine(reply, replies, len(replies)))
            replies.append(PartitionProduceResponse(index=data.index, base_offset=-1))  # until it is known
        else:
            replies.append(reply)


def _append_or_wait(
    topic: str, data: PartitionProduceData, acks: int, context: Context, appends: _Appends
) -> "PartitionProduceResponse | asyncio.Future[PartitionProduceResponse]":
    """Append a batch and return the reply to it; a future of the reply if the batch has to wait in line."""
    broker = context.broker
    try:
        if acks not in _ACKS:
            raise InvalidRequiredAcks(f"acks={acks} is not one of 0, 1 and -1 (all)")
        if data.records is None:
            raise InvalidRequest(f"{topic}-{data.index} comes without records")
        if topic in INTERNAL_TOPICS:
            raise InvalidTopic(f"{topic} is the broker's own: clients can read it, and not write to it")
        partition = broker.partition(topic, data.index)
        if broker.inspections.must_wait(partition, data.records):
            partition.ensure_leader()
            return broker.inspections.put_in_line(
                partition,
                data.records,
                lambda outcome: _append(partition, outcome, acks, context, appends.uncommitted),
            )
    except FAILURES as error:
        return _failed(topic, data.index, error, context)
    return _append(partition, data.records, acks, context, appends.uncommitted)


def _append(
    partition: Partition, batch: Buffer | Outcome, acks: int, context: Context, uncommitted: list[_Waiting]
) -> PartitionProduceResponse:
    """Append a batch, unless it is refused already, and return the reply to it."""
    broker, id_ = context.broker, partition.id
    if isinstance(batch, KafkaError):
        return _failed(id_.topic, id_.partition, batch, context)
    try:
        if acks != _ALL:  # that is answered when others have the record, who would not follow a leader of old
            broker.ensure_lease(partition)
        appended, commit = partition.append(batch, acks_all=acks == _ALL)
    except FAILURES as error:
        return _failed(id_.topic, id_.partition, error, context)
    reply = PartitionProduceResponse(
        index=id_.partition,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=partition.log.log_start_offset,
    )
    if acks == _ALL:
        broker.schemas.written(id_.topic)
        if commit is not None:
            uncommitted.append(_Waiting(commit, reply))
    return reply


def _failed(topic: str, index: int, error: Failure, context: Context) -> PartitionProduceResponse:
    if isinstance(error, StorageError):
        context.broker.disk_failed()
    context.broker.meters.of(topic).failed_produces += 1
    return _refused(index, error)


class InvalidRequiredAcks(KafkaError):
    code = ErrorCode.INVALID_REQUIRED_ACKS


def _refused(index: int, error: Failure) -> PartitionProduceResponse:
    """The reply that says why a batch was not appended, and which of its records are invalid.

    A client takes an error without record errors to be about every record of the batch.
    """
    record_errors = error.record_errors if isinstance(error, KafkaError) else ()
    return PartitionProduceResponse(
        index=index,
        error_code=error_code(error),
        base_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=why)
            for place, why in record_errors
        ],
        error_message=error_message(error),
    )
