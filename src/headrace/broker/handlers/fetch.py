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

from typing import Final

from headrace.broker.errors import UnknownTopicId
from headrace.broker.records.fetch_sessions import (
    Exists,
    NamedPartitions,
    PartitionKey,
    Plan,
    SessionPartition,
)
from headrace.broker.records.reads import READ_AT_ONCE, STEP, FetchingReplica, Read, Reader
from headrace.broker.replicas.committed_log import Isolation
from headrace.broker.replicas.partition import Partition, monotonic_ms
from headrace.broker.replicas.repairs import REPAIRING
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_topics
from headrace.broker.results import Encoded, Result
from headrace.broker.slices import Steps, each, free, in_slices
from headrace.protocol.compiled.structs import all_defaults
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
from headrace.security import authorization
from headrace.storage.txn_index import AbortedTxn

ZSTD = 10
BY_ID = 13
ENCODED_AT_ONCE = 500  # aborted transactions; a response with more is encoded in slices
_NOT_DIVERGING: Final = all_defaults(EpochEndOffset)  # the codec looks for this very object
_READ: Final = on_topics(authorization.Operation.READ)  # for consumers
_REPLICATE: Final = authorization.Permission(
    authorization.Operation.CLUSTER_ACTION, authorization.ResourceType.CLUSTER
)  # for followers


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
            (yield from _named(request)),
            by_id=context.version >= BY_ID,
            exists=_existence(context),
            privileged=is_follower,
            now_ms=monotonic_ms(),
            principal=context.principal,
        )
    except KafkaError as error:
        return Result(FetchResponse(error_code=error.code, responses=()))
    reader = Reader(
        find=lambda entry: _partition(entry, request, context, replica),
        room=lambda: _room(request, context, replica),
        min_bytes=request.min_bytes,
        max_wait_ms=request.max_wait_ms,
        isolation=Isolation.READ_COMMITTED if request.isolation_level == 1 else Isolation.READ_UNCOMMITTED,
        rack=request.rack_id,
        replica=replica,
        knows_zstd=context.version >= ZSTD,
    )
    if len(plan.partitions) > READ_AT_ONCE:
        read = yield from context.broker.reads.fetch_many(plan.partitions, reader)
    else:
        read = context.broker.reads.fetch(plan.partitions, reader)
    if isinstance(read, Read):
        return Result((yield from _reply(plan, read, context, replica)))

    async def reply_later() -> FetchResponse | Encoded:
        return await in_slices(_reply(plan, await read, context, replica))

    return Result(later=reply_later())


def _replica(request: FetchRequest) -> FetchingReplica | None:
    if request.replica_id >= 0:
        return FetchingReplica(request.replica_id, -1)
    state = request.replica_state
    return FetchingReplica(state.replica_id, state.replica_epoch) if state.replica_id >= 0 else None


def _named(request: FetchRequest) -> Steps[NamedPartitions]:
    """Return the partitions of a request. If one of them is repeated, its last entry counts."""
    partitions: dict[PartitionKey, SessionPartition] = {}
    for topic in request.topics:
        for number, data in enumerate(topic.partitions):
            if not number % STEP:
                yield
            entry = SessionPartition(
                topic.topic,
                topic.topic_id,
                data.partition,
                data.fetch_offset,
                data.partition_max_bytes,
                data.current_leader_epoch,
                data.last_fetched_epoch,
            )
            partitions[entry.key] = entry
    forgotten: list[PartitionKey] = []
    for gone in request.forgotten_topics_data:
        yield
        forgotten += [(gone.topic, gone.topic_id, partition) for partition in gone.partitions]
    return NamedPartitions(request.session_id, request.session_epoch, list(partitions.values()), forgotten)


def _existence(context: Context) -> Exists:
    """Return a function that tells whether a partition exists in the cluster."""
    image, by_id = context.broker.image, context.version >= BY_ID

    def exists(entry: SessionPartition) -> bool:
        name = image.topic_names.get(entry.topic_id) if by_id else entry.topic
        topic = image.topics.get(name or "")
        return topic is not None and entry.partition in topic.replicas

    return exists


def _partition(
    entry: SessionPartition, request: FetchRequest, context: Context, replica: FetchingReplica | None
) -> Partition:
    """Return a partition that the client may read, or raise its error.

    Permissions are checked at every read: a session, and a request in the purgatory, may outlive them.
    """
    by_id = context.version >= BY_ID
    if replica is not None:
        try:
            context.require(_REPLICATE)
        except authorization.AuthorizationFailed as error:  # Kafka names the topic, not the cluster
            raise authorization.authorization_failed(_READ) from error
    name = context.broker.topic_name(entry.topic_id) if by_id else entry.topic
    if replica is None:
        _require_read(request, context, name)
    try:
        return context.broker.partition(name, entry.partition)
    except UnknownTopicOrPartition as error:
        if by_id:
            raise UnknownTopicId(str(error)) from error
        raise


def _require_read(request: FetchRequest, context: Context, name: str) -> None:
    """Raise TOPIC_AUTHORIZATION_FAILED unless the client may read, or is a broker that repairs a replica."""
    try:
        context.require(_READ, name)
    except authorization.AuthorizationFailed:
        is_repair = request.replica_state.replica_id == REPAIRING and context.accepts_brokers
        if not is_repair or not context.may(_REPLICATE):
            raise


def _room(request: FetchRequest, context: Context, replica: FetchingReplica | None) -> int:
    """Return how many bytes of records the response may have; its first batch may be larger."""
    if context.broker.connections.holds_too_many_replies:
        return 0
    room = min(request.max_bytes, context.broker.config.integer("fetch.max.bytes"))
    if replica is None and context.usage is not None:
        room = min(room, context.usage.largest_fetch)
    return room


def _reply(
    plan: Plan, read: Read, context: Context, replica: FetchingReplica | None
) -> Steps[FetchResponse | Encoded]:
    """Make the response, which is empty if the client has exceeded its quota."""
    if replica is None and context.usage is not None:
        throttle_ms = context.usage.charge_fetch(read.size)
        if throttle_ms:
            session_id = context.broker.fetch_sessions.discard_new(plan)
            return FetchResponse(throttle_time_ms=throttle_ms, session_id=session_id, responses=())
    read.count(for_replica=replica is not None)
    return (yield from _response(plan, read, context.version))


def _response(plan: Plan, read: Read, version: int) -> Steps[FetchResponse | Encoded]:
    """Make the response, of a session only with the partitions that have changed; encode a long one here."""
    topics: dict[tuple[str, bytes], list[PartitionData]] = {}
    aborted_lists = []
    for number, (entry, fetched) in enumerate(read.parts):
        if not number % STEP:
            yield
        offsets = (fetched.high_watermark, fetched.last_stable_offset, fetched.log_start_offset)
        has_data = bool(fetched.data)
        has_changed = plan.session is None or entry.update_response(fetched.error_code, offsets, has_data)
        if has_data and plan.session is not None:
            plan.session.served(entry)
        if has_changed or not plan.incremental:
            listed: list[AbortedTransaction] | None = None if fetched.aborted is None else []
            if fetched.aborted:
                listed = yield from each(_aborted, fetched.aborted)
                aborted_lists.append(listed)
            data = PartitionData(
                partition_index=entry.partition,
                error_code=fetched.error_code,
                high_watermark=fetched.high_watermark,
                last_stable_offset=fetched.last_stable_offset,
                log_start_offset=fetched.log_start_offset,
                diverging_epoch=_NOT_DIVERGING
                if fetched.diverging is None
                else EpochEndOffset(epoch=fetched.diverging.epoch, end_offset=fetched.diverging.end_offset),
                preferred_read_replica=fetched.preferred_replica,
                aborted_transactions=listed,
                records=fetched.data,
            )
            topics.setdefault((entry.topic, entry.topic_id), []).append(data)
    response = FetchResponse(
        session_id=plan.session_id,
        responses=[
            FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=partitions)
            for (name, topic_id), partitions in topics.items()
        ],
    )
    if sum(map(len, aborted_lists)) <= ENCODED_AT_ONCE and len(plan.partitions) <= READ_AT_ONCE:
        return response
    encoded = Encoded((yield from response.encode_in_slices(version)))
    for listed in aborted_lists:
        yield from free(listed)
    return encoded


def _aborted(aborted: AbortedTxn) -> AbortedTransaction:
    return AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
