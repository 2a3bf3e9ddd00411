"""Produce (key 0), v3-v13.

Behaviour: acks=1 is answered when the leader has appended the batch, acks=-1 when the whole ISR has it.
           acks=0 gets no response, and an error closes the connection, so that the client refreshes its
           metadata. Records are read, in threads, if the topic is compacted, has a compression.type,
           validates schemas or has headrace.validate.records: the response lists every invalid record, and a
           batch that is too large to be read is refused with MESSAGE_TOO_LARGE. The first batch of a
           transaction waits until the transaction coordinator has confirmed its partition (KIP-890).
Versions:  v3 record batches, transactions; v5 log start offset; v8 per-record errors; v9 flexible; v10 new
           leaders in responses (not sent yet); v11 TRANSACTION_ABORTABLE; v12 partitions need not be added to
           a transaction before; v13 topics by id.
Quotas:    a client that exceeds its producer_byte_rate is throttled after the response.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.broker.errors import TimedOut
from headrace.broker.records.appends import Outcome, Writer
from headrace.broker.replicas.purgatory import Commit
from headrace.broker.requests.dispatch import Context, HangUp, handles
from headrace.broker.requests.requirements import on_topics, on_transactional_ids
from headrace.broker.results import NO_RESPONSE, Reply, Result
from headrace.broker.slices import STEP, Steps, at_once, in_slices
from headrace.broker.translate import FAILURES, Failure, error_code, error_message
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.fields import Buffer
from headrace.protocol.kafka_errors import InvalidRequest
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from headrace.security.authorization import Operation
from headrace.storage.errors import InvalidTopic
from headrace.storage.topics import INTERNAL_TOPICS

BY_ID = 13
_ABORTABLE, _IMPLICIT_PARTITIONS = 11, 12
AT_ONCE = 256  # topics, and partitions; a request with more is processed in slices
_ALL = -1
_ACKS = (_ALL, 0, 1)

_WRITE: Final = on_transactional_ids(Operation.WRITE)
_WRITE_TOPIC: Final = on_topics(Operation.WRITE)


Batches = Sequence[tuple[int, Buffer | None]]
"""The batches of a topic, each with its partition."""


class _Appended(NamedTuple):
    """A topic of the request, and the outcome of each of its batches; a future if it has to wait."""

    topic: str | bytes
    """Its name, or its id if the request has ids."""
    batches: Batches
    outcomes: "list[Outcome | asyncio.Future[Outcome]]"


@handles(ApiKey.PRODUCE, range(3, 14), requires=(_WRITE_TOPIC, _WRITE))
def produce(request: ProduceRequest, context: Context) -> Result:
    """Append every batch in order; the result waits for the acks."""
    topics = request.topic_data
    writer = _writer(request.acks, request.transactional_id, context)
    if len(topics) > AT_ONCE or sum([len(topic.partition_data) for topic in topics]) > AT_ONCE:
        return Result(steps=_produce_in_steps(request, writer, context))
    appended = []
    for topic in topics:
        key = topic.topic_id if context.version >= BY_ID else topic.name
        batches = [(data.index, data.records) for data in topic.partition_data]
        appended.append(_Appended(key, batches, _append(key, batches, request.acks, writer, context)))
    if _must_wait(appended):
        return Result(later=_wait_and_respond(appended, request, context))
    return _result(at_once(_response(appended)), request)


def _writer(acks: int, transactional_id: str | None, context: Context) -> Writer:
    return Writer(
        acks == _ALL,
        transactional_id,
        adds_partitions=context.version >= _IMPLICIT_PARTITIONS,
        knows_abortable=context.version >= _ABORTABLE,
    )


def _produce_in_steps(request: ProduceRequest, writer: Writer, context: Context) -> Steps[Result]:
    """Append like `produce`, in slices, for a request with many partitions."""
    appended = []
    for topic in request.topic_data:
        key = topic.topic_id if context.version >= BY_ID else topic.name
        batches: list[tuple[int, Buffer | None]] = []
        outcomes: list[Outcome | asyncio.Future[Outcome]] = []
        yield
        for first in range(0, len(topic.partition_data), STEP):
            yield
            some = [(data.index, data.records) for data in topic.partition_data[first : first + STEP]]
            outcomes += _append(key, some, request.acks, writer, context)
            batches += some
        appended.append(_Appended(key, batches, outcomes))
    if _must_wait(appended):
        return Result(later=_wait_and_respond(appended, request, context))
    return _result((yield from _response(appended)), request)


def _append(
    topic: str | bytes, batches: Batches, acks: int, writer: Writer, context: Context
) -> "list[Outcome | asyncio.Future[Outcome]]":
    """Append batches of a topic, which is given by its name or its id; return the outcome of each."""
    broker = context.broker
    try:
        name = topic if isinstance(topic, str) else broker.topic_name(topic)
        if writer.transactional_id is not None:
            context.require(_WRITE, writer.transactional_id)
        context.require(_WRITE_TOPIC, name)
    except KafkaError as error:
        return [Outcome(error)] * len(batches)
    outcomes: list[Outcome | asyncio.Future[Outcome]] = []
    for index, records in batches:
        try:
            if acks not in _ACKS:
                raise InvalidRequiredAcks(f"acks={acks} is not 0, 1 or -1 (INVALID_REQUIRED_ACKS)")
            if records is None:
                raise InvalidRequest(f"{name}-{index}: the request has no records (INVALID_REQUEST)")
            if name in INTERNAL_TOPICS:
                raise InvalidTopic(
                    f"{name} is internal: clients cannot produce to it (INVALID_TOPIC_EXCEPTION)"
                )
            outcomes.append(broker.appends.append(broker.partition(name, index), records, writer))
        except FAILURES as error:
            outcomes.append(broker.appends.refused(name, error))
    return outcomes


def _must_wait(appended: list[_Appended]) -> bool:
    return any(
        not isinstance(outcome, Outcome) or outcome.commit is not None
        for topic in appended
        for outcome in topic.outcomes
    )


async def _wait(appended: list[_Appended], timeout_ms: int, loop: asyncio.AbstractEventLoop) -> None:
    """Return when all batches are committed or have failed, or after the client's timeout."""
    uncommitted: list[Commit] = []
    for topic in appended:
        outcomes = topic.outcomes
        for position, waiting in enumerate(outcomes):
            outcome = waiting
            if not isinstance(outcome, Outcome):
                await asyncio.wait([outcome])  # which does not cancel the append if the client disconnects
                outcomes[position] = outcome = outcome.result()
            if outcome.commit is not None:
                uncommitted.append(outcome.commit)
    timer = loop.call_later(max(timeout_ms, 0) / 1000, _time_out, uncommitted)
    try:
        for commit in uncommitted:
            await commit
    finally:
        timer.cancel()


async def _wait_and_respond(appended: list[_Appended], request: ProduceRequest, context: Context) -> Reply:
    await _wait(appended, request.timeout_ms, context.broker.loop)
    return _result(await in_slices(_response(appended)), request).reply


def _time_out(uncommitted: list[Commit]) -> None:
    timed_out = TimedOut("not all replicas of the ISR have fetched the batch in time (REQUEST_TIMED_OUT)")
    for commit in uncommitted:
        if not commit.done():
            commit.set_result(timed_out)


def _response(appended: list[_Appended]) -> Steps[ProduceResponse]:
    """Build the response, in steps, when all outcomes are there."""
    topics = []
    for topic, batches, outcomes in appended:
        yield
        partitions = []
        for number, ((index, _), outcome) in enumerate(zip(batches, outcomes, strict=True), start=1):
            if not number % STEP:
                yield
            assert isinstance(outcome, Outcome)
            error = outcome.error if outcome.commit is None else outcome.commit.result()
            if error is not None:
                partitions.append(_refused(index, error))
                continue
            partitions.append(
                PartitionProduceResponse(
                    index=index,
                    base_offset=outcome.base_offset,
                    log_append_time_ms=outcome.log_append_time_ms,
                    log_start_offset=outcome.log_start_offset,
                )
            )
        if isinstance(topic, str):
            topics.append(TopicProduceResponse(name=topic, partition_responses=partitions))
        else:
            topics.append(TopicProduceResponse(topic_id=topic, partition_responses=partitions))
    return ProduceResponse(responses=topics)


def _result(response: ProduceResponse, request: ProduceRequest) -> Result:
    """Return the response; with acks=0 there is none, and a failure closes the connection."""
    if request.acks != 0:
        return Result(response)
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                raise HangUp(
                    f"closing the connection after a failed Produce with acks=0: {partition.error_message}"
                )
    return NO_RESPONSE


class InvalidRequiredAcks(KafkaError):
    code = ErrorCode.INVALID_REQUIRED_ACKS


def _refused(index: int, error: Failure) -> PartitionProduceResponse:
    """Return the response of a refused batch, with the errors of its records.

    Clients apply an error without record errors to every record of the batch.
    """
    record_errors = error.record_errors if isinstance(error, KafkaError) else ()
    return PartitionProduceResponse(
        index=index,
        error_code=error_code(error),
        base_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in record_errors
        ],
        error_message=error_message(error),
    )
