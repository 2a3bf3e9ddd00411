"""Fetch (key 1), v4-v18.

Behaviour: long poll: the response is sent when min_bytes are available, when max_wait_ms have passed, or at
           once if a partition has an error. Partitions are read in the order of the request, up to max_bytes;
           the first batch is returned whatever its size. If a limit cuts the data off, the request does not
           wait. While unsent responses fill the broker's memory, a response contains only the first batch.
Versions:  v4 isolation levels; v5 log start offset; v7 incremental sessions; v9 leader epochs are checked;
           v10 zstd (older versions get UNSUPPORTED_COMPRESSION_TYPE for topics with compression.type=zstd);
           v12 flexible, diverging epochs; v13 topics by id; v15 replica state is a tag; v16 new leaders in
           responses (not sent yet).
Replicas:  a follower reads up to the log end offset, and its fetch offset is its own log end offset. A
           follower whose log has diverged gets the diverging epoch. Without an authorizer, a follower gets
           CLUSTER_AUTHORIZATION_FAILED on other listeners than the inter-broker one. With one, a follower
           without CLUSTER_ACTION gets TOPIC_AUTHORIZATION_FAILED for every partition. A consumer may
           read from any replica in the ISR, and is sent to a replica in its rack according to
           replica.selector.class. A broker that repairs a damaged segment fetches it as a consumer with
           replica id -2, and needs CLUSTER_ACTION on the inter-broker listener.
Quotas:    a response that exceeds consumer_byte_rate or request_percentage is empty, with the throttle time.
           Followers are exempt.
"""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headrace.broker.errors import TooOldForZstd, UnknownTopicId
from headrace.broker.meters import TopicMeter
from headrace.broker.records.fetch_sessions import Exists, Plan, SessionPartition
from headrace.broker.replicas.committed_log import Isolation
from headrace.broker.replicas.partition import Partition, monotonic_ms
from headrace.broker.replicas.purgatory import WaitingFetch
from headrace.broker.replicas.repairs import REPAIRING
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_topics
from headrace.broker.results import Encoded, Result
from headrace.broker.slices import Steps, at_once, each, free, in_slices
from headrace.broker.translate import FAILURES, Failure, error_code
from headrace.protocol.batch import read_header
from headrace.protocol.compression import Compression
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.kafka_errors import UnknownTopicOrPartition
from headrace.protocol.schema.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import (
    AuthorizationFailed,
    Operation,
    Permission,
    ResourceType,
    authorization_failed,
)
from headrace.storage.errors import OffsetOutOfRange
from headrace.storage.page_cache import NotCached, cached_only
from headrace.storage.txn_index import AbortedTxn

ZSTD = 10
BY_ID = 13
MAX_LOADS = 16  # of missing parts for one Fetch: index, position and data of each cold partition
READ_AT_ONCE = 256  # partitions; a request with more is processed in slices
ENCODED_AT_ONCE = 500  # aborted transactions; a response with more is encoded in slices
STEP = 16  # partitions between two yields
_READ: Final = on_topics(Operation.READ)  # for consumers
_REPLICATE: Final = Permission(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)  # for followers


@handles(ApiKey.FETCH, range(4, 19), requires=(_READ, _REPLICATE))
def fetch(request: FetchRequest, context: Context) -> Steps[Result]:
    """Read immediately; wait only if less than min_bytes are available."""
    replica = _replica(request)
    if replica is not None and not context.accepts_brokers:
        return Result(FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, responses=()))
    is_follower = replica is not None and context.may(_REPLICATE)
    if is_follower and context.usage is not None:
        context.usage.exempt()
    try:
        plan = yield from context.broker.fetch_sessions.plan(
            request,
            by_id=context.version >= BY_ID,
            exists=_existence(context),
            privileged=is_follower,
            now_ms=monotonic_ms(),
            principal=context.principal,
        )
    except KafkaError as error:
        return Result(FetchResponse(error_code=error.code, responses=()))
    if len(plan.partitions) > READ_AT_ONCE:
        return (yield from _fetch_many(plan, request, context, replica))
    found = at_once(_read(plan, request, context, replica))
    if found.missing:
        return Result(later=_load_and_reply(plan, request, context, replica, found.missing))
    if _is_enough(plan, found, request):
        return Result((yield from _reply(plan, found, context, replica)))
    partitions = at_once(_partitions(plan, request, context, replica))
    waiting = _waiting(partitions, request, context, replica, missing=request.min_bytes - found.size)
    return Result(later=_wait(plan, request, context, waiting, replica))


def _fetch_many(
    plan: Plan, request: FetchRequest, context: Context, replica: "_Replica | None"
) -> Steps[Result]:
    """Fetch from so many partitions that appends may happen between the reads.

    The purgatory entry is created before the first read, so that no such append is missed.
    """
    partitions = yield from _partitions(plan, request, context, replica)
    waiting = _waiting(partitions, request, context, replica, missing=request.min_bytes)
    is_waiting = False
    try:
        found = yield from _read(plan, request, context, replica)
        if found.missing:
            return Result(later=_load_and_reply(plan, request, context, replica, found.missing))
        if _is_enough(plan, found, request):
            return Result((yield from _reply(plan, found, context, replica)))
        waiting.arrived(found.size)
        is_waiting = True
        return Result(later=_wait(plan, request, context, waiting, replica))
    finally:
        if not is_waiting:
            waiting.wake()


def _is_enough(plan: Plan, found: "_ReadResult", request: FetchRequest) -> bool:
    """Return whether the response can be sent without waiting."""
    if found.size >= request.min_bytes or found.failed or request.max_wait_ms <= 0 or not plan.partitions:
        return True
    # If a limit cut the data off, the next append would not add to the response.
    return bool(found.size) and any(_has_more(entry, data, request) for entry, data in found.entries)


def _partitions(
    plan: Plan, request: FetchRequest, context: Context, replica: "_Replica | None"
) -> Steps[list[Partition]]:
    """Return the partitions of a plan that this broker has."""
    partitions = []
    for number, entry in enumerate(plan.partitions):
        if not number % STEP:
            yield
        partition = _find(entry, request, context, replica)
        if partition is not None:
            partitions.append(partition)
    return partitions


def _waiting(
    partitions: list[Partition],
    request: FetchRequest,
    context: Context,
    replica: "_Replica | None",
    *,
    missing: int,
) -> WaitingFetch:
    return WaitingFetch(
        partitions,
        missing=missing,
        max_wait_ms=request.max_wait_ms,
        loop=context.broker.loop,
        as_replica=replica is not None,
    )


async def _wait(
    plan: Plan, request: FetchRequest, context: Context, waiting: WaitingFetch, replica: "_Replica | None"
) -> FetchResponse | Encoded:
    try:
        await waiting.done
    finally:
        waiting.wake()  # removes it from the purgatory if the client has disconnected
    found = await in_slices(_read(plan, request, context, replica))
    if found.missing:
        return await _load_and_reply(plan, request, context, replica, found.missing)
    return await in_slices(_reply(plan, found, context, replica))


async def _load_and_reply(
    plan: Plan,
    request: FetchRequest,
    context: Context,
    replica: "_Replica | None",
    missing: Sequence[NotCached],
) -> FetchResponse | Encoded:
    """Load data that is not in the page cache in a thread, then read again and return the response."""
    for attempt in range(MAX_LOADS):
        for each_missing in missing:
            await asyncio.to_thread(each_missing.load)
        is_last = attempt == MAX_LOADS - 1  # the page cache is under pressure
        found = await in_slices(_read(plan, request, context, replica, may_block=is_last))
        missing = found.missing
        if not missing:
            break
    return await in_slices(_reply(plan, found, context, replica))


class _Replica(NamedTuple):
    """The follower that fetches."""

    broker_id: int
    broker_epoch: int


def _replica(request: FetchRequest) -> _Replica | None:
    if request.replica_id >= 0:
        return _Replica(request.replica_id, -1)
    state = request.replica_state
    return _Replica(state.replica_id, state.replica_epoch) if state.replica_id >= 0 else None


@dataclass(slots=True)
class _ReadResult:
    """The data that was read from the partitions of a request."""

    entries: list[tuple[SessionPartition, PartitionData]]
    meters: list[tuple[TopicMeter, int]]  # with the number of bytes; 0: an error
    size: int = 0
    failed: bool = False
    missing: list[NotCached] = field(default_factory=list)  # data that is not in the page cache
    # Lists of the response, and the aborted transactions that they will have.
    aborted: list[tuple[list[AbortedTransaction], Sequence[AbortedTxn]]] = field(default_factory=list)

    def add(self, entry: SessionPartition, data: PartitionData, meter: TopicMeter) -> None:
        self.entries.append((entry, data))
        size = len(data.records or b"")
        self.size += size
        if size or data.error_code:
            self.meters.append((meter, size))


def _existence(context: Context) -> Exists:
    """Return a function that tells whether a partition exists in the cluster."""
    image, by_id = context.broker.image, context.version >= BY_ID

    def exists(entry: SessionPartition) -> bool:
        name = image.topic_names.get(entry.topic_id) if by_id else entry.topic
        topic = image.topics.get(name or "")
        return topic is not None and entry.partition in topic.replicas

    return exists


def _find(
    entry: SessionPartition, request: FetchRequest, context: Context, replica: _Replica | None
) -> Partition | None:
    try:
        return _partition(entry, request, context, replica)
    except KafkaError:
        return None


def _partition(
    entry: SessionPartition, request: FetchRequest, context: Context, replica: _Replica | None
) -> Partition:
    """Return a partition that the client may read, or raise its error.

    Permissions are checked at every read: a session, and a request in the purgatory, may outlive them.
    """
    by_id = context.version >= BY_ID
    if replica is not None:
        _require_replication(context)
    name = context.broker.topic_name(entry.topic_id) if by_id else entry.topic
    if replica is None:
        _require_read(request, context, name)
    if not by_id:
        return context.broker.partition(name, entry.partition)
    try:
        return context.broker.partition(name, entry.partition)
    except UnknownTopicOrPartition as error:
        raise UnknownTopicId(str(error)) from error


def _require_read(request: FetchRequest, context: Context, name: str) -> None:
    """Raise TOPIC_AUTHORIZATION_FAILED unless the client may read, or is a broker that repairs a replica."""
    try:
        context.require(_READ, name)
    except AuthorizationFailed:
        is_repair = request.replica_state.replica_id == REPAIRING and context.accepts_brokers
        if not is_repair or not context.may(_REPLICATE):
            raise


def _require_replication(context: Context) -> None:
    """Raise TOPIC_AUTHORIZATION_FAILED, as Kafka does, if a follower lacks CLUSTER_ACTION."""
    try:
        context.require(_REPLICATE)
    except AuthorizationFailed as error:
        raise authorization_failed(_READ) from error


def _read(
    plan: Plan, request: FetchRequest, context: Context, replica: _Replica | None, *, may_block: bool = False
) -> Steps[_ReadResult]:
    reading = nullcontext if may_block else cached_only
    isolation = Isolation.READ_COMMITTED if request.isolation_level == 1 else Isolation.READ_UNCOMMITTED
    room = _room(request, context, replica)
    found = _ReadResult([], [])
    for number, entry in enumerate(plan.partitions):
        if not number % STEP:
            yield
        try:
            partition = _partition(entry, request, context, replica)
            limit = max(0, min(room - found.size, entry.max_bytes))
            first = found.size == 0
            if context.version < ZSTD and partition.log.config.compression is Compression.ZSTD:
                raise TooOldForZstd(
                    f"{partition.id} is compressed with zstd, which needs Fetch v{ZSTD} or later "
                    "(UNSUPPORTED_COMPRESSION_TYPE)"
                )
            if replica is None:
                nearer = _nearer(partition, entry, request.rack_id, context) if request.rack_id else None
                if nearer is not None:
                    data = _redirected(partition, entry, nearer)
                    found.failed = True  # the redirection is sent at once
                else:
                    with reading():
                        data, aborted = _read_one(partition, entry, limit, isolation, context, first=first)
                    found.aborted += aborted
            else:
                with reading():
                    data = _read_for_replica(partition, entry, limit, replica, context, first=first)
                found.failed = found.failed or data.diverging_epoch.epoch != -1
        except NotCached as missing:
            found.missing.append(missing)
        except FAILURES as error:
            found.failed = True
            found.add(entry, _failed(entry, error), context.broker.meters.of(entry.topic))
        else:
            found.add(entry, data, partition.meter)
    return found


def _room(request: FetchRequest, context: Context, replica: _Replica | None) -> int:
    """Return how many bytes of records the response may have; its first batch may be larger."""
    room = min(request.max_bytes, context.broker.config.integer("fetch.max.bytes"))
    if context.broker.connections.holds_too_many_replies:
        room = 0
    if replica is None and context.usage is not None:
        room = min(room, context.usage.largest_fetch)
    return room


def _count(found: _ReadResult, replica: _Replica | None) -> None:
    """Count the data of the response; data that was read before a wait is not counted."""
    for meter, size in found.meters:
        meter.failed_fetches += not size
        if replica is None:
            meter.fetches += 1
            meter.bytes_out += size
        else:
            meter.replicated_out += size


def _read_one(
    partition: Partition,
    entry: SessionPartition,
    limit: int,
    isolation: Isolation,
    context: Context,
    *,
    first: bool,
) -> tuple[PartitionData, list[tuple[list[AbortedTransaction], Sequence[AbortedTxn]]]]:
    """Return the data of a partition, and its list of aborted transactions with what has to be in it."""
    partition.ensure_readable(entry.leader_epoch)
    try:
        fetched = partition.read(entry.offset, limit, isolation, at_least_one=first)
    except OffsetOutOfRange:
        # A consumer would reset its position. A stale leader does not have the newest records.
        if partition.leadership is not None:
            context.broker.ensure_lease(partition)
        raise
    listed: list[AbortedTransaction] = []
    data = PartitionData(
        partition_index=entry.partition,
        high_watermark=fetched.high_watermark,
        last_stable_offset=fetched.last_stable_offset,
        log_start_offset=fetched.log_start_offset,
        aborted_transactions=None if fetched.aborted is None else listed,
        records=fetched.data,
    )
    return data, [(listed, fetched.aborted)] if fetched.aborted else []


def _nearer(partition: Partition, entry: SessionPartition, rack: str, context: Context) -> int | None:
    """Return a replica of the ISR in the consumer's rack that has the fetch offset (KIP-392), or None."""
    leadership, broker = partition.leadership, context.broker
    if leadership is None or rack == broker.config.rack or not broker.config.sends_to_nearest:
        return None
    near = [
        (follower.log_end_offset, broker_id)
        for broker_id, follower in leadership.followers.items()
        if broker_id in leadership.isr
        and follower.log_end_offset >= entry.offset
        and broker_id in broker.image.brokers
        and broker.image.brokers[broker_id].rack == rack
    ]
    return max(near)[1] if near else None


def _redirected(partition: Partition, entry: SessionPartition, broker_id: int) -> PartitionData:
    return PartitionData(
        partition_index=entry.partition,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.log.last_stable_offset(partition.high_watermark),
        log_start_offset=partition.log.log_start_offset,
        preferred_read_replica=broker_id,
        aborted_transactions=None,
        records=b"",
    )


def _throttled(limit: int, context: Context) -> int:
    rate = context.broker.replicas.rate_to_followers
    return 0 if rate.is_exceeded(context.broker.loop.time()) else limit


def _read_for_replica(
    partition: Partition,
    entry: SessionPartition,
    limit: int,
    replica: _Replica,
    context: Context,
    *,
    first: bool,
) -> PartitionData:
    in_sync = replica.broker_id in partition.isr
    if partition.throttled_for_followers and not in_sync:
        limit = _throttled(limit, context)
    data = _read_to_log_end(partition, entry, limit, replica, first=first and limit > 0)
    if not in_sync:
        context.broker.replicas.isr_changes.consider(partition)
        if partition.throttled_for_followers:
            spent = len(data.records or b"")
            context.broker.replicas.rate_to_followers.spend(spent, context.broker.loop.time())
    return data


def _read_to_log_end(
    partition: Partition, entry: SessionPartition, limit: int, replica: _Replica, *, first: bool
) -> PartitionData:
    partition.ensure_leader(entry.leader_epoch)
    diverging = partition.diverges(entry.offset, entry.last_epoch) if entry.last_epoch >= 0 else None
    if diverging is not None:
        return PartitionData(
            partition_index=entry.partition,
            high_watermark=partition.high_watermark,
            diverging_epoch=EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.end_offset),
            aborted_transactions=None,
            records=b"",
        )
    fetched = partition.read_as_replica(entry.offset, limit, at_least_one=first)
    partition.follower_fetches(
        replica.broker_id, entry.offset, broker_epoch=replica.broker_epoch, now_ms=monotonic_ms()
    )
    if fetched.data:
        partition.serve_follower(replica.broker_id, entry.offset)
    return PartitionData(
        partition_index=entry.partition,
        high_watermark=partition.high_watermark,
        last_stable_offset=fetched.last_stable_offset,
        log_start_offset=fetched.log_start_offset,
        aborted_transactions=None,
        records=fetched.data,
    )


def _has_more(entry: SessionPartition, data: PartitionData, request: FetchRequest) -> bool:
    """Return whether a limit or the end of a segment cut the data off before the last readable record."""
    records, position, next_offset = data.records or b"", 0, entry.offset
    while position < len(records):
        header = read_header(records, position)
        next_offset = header.next_offset
        position += header.size
    committed = request.isolation_level == Isolation.READ_COMMITTED
    return next_offset < (data.last_stable_offset if committed else data.high_watermark)


def _failed(entry: SessionPartition, failure: Failure) -> PartitionData:
    return PartitionData(
        partition_index=entry.partition,
        error_code=error_code(failure),
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


def _reply(
    plan: Plan, found: _ReadResult, context: Context, replica: _Replica | None
) -> Steps[FetchResponse | Encoded]:
    """Make the response, which is empty if the client has exceeded its quota."""
    if replica is None and context.usage is not None:
        throttle_ms = context.usage.charge_fetch(found.size)
        if throttle_ms:
            session_id = context.broker.fetch_sessions.discard_new(plan)
            return FetchResponse(throttle_time_ms=throttle_ms, session_id=session_id, responses=())
    return (yield from _reply_with_data(plan, found, context.version, replica))


def _reply_with_data(
    plan: Plan, found: _ReadResult, version: int, replica: _Replica | None
) -> Steps[FetchResponse | Encoded]:
    """Make the response; a long one is encoded here, in steps."""
    for listed, aborted in found.aborted:
        listed.extend((yield from each(_listed, aborted)))
    response = yield from _response(plan, found, replica)
    is_short = sum(len(aborted) for _, aborted in found.aborted) <= ENCODED_AT_ONCE
    if is_short and len(plan.partitions) <= READ_AT_ONCE:
        return response
    encoded = Encoded((yield from response.encode_in_slices(version)))
    for listed, _ in found.aborted:
        yield from free(listed)
    return encoded


def _listed(aborted: AbortedTxn) -> AbortedTransaction:
    return AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)


def _response(plan: Plan, found: _ReadResult, replica: _Replica | None) -> Steps[FetchResponse]:
    _count(found, replica)
    topics: dict[tuple[str, bytes], list[PartitionData]] = {}
    for number, (entry, data) in enumerate(found.entries):
        if not number % STEP:
            yield
        offsets = (data.high_watermark, data.last_stable_offset, data.log_start_offset)
        has_data = bool(data.records)
        changed = plan.session is None or entry.update_response(data.error_code, offsets, has_data)
        if has_data and plan.session is not None:
            plan.session.served(entry)
        if changed or not plan.incremental:
            topics.setdefault((entry.topic, entry.topic_id), []).append(data)
    return FetchResponse(
        session_id=plan.session_id,
        responses=[
            FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=partitions)
            for (name, topic_id), partitions in topics.items()
        ],
    )
