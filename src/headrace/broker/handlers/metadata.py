"""Metadata (key 3), v0-v13.

Behaviour: returns the live brokers of the client's listener, the controller, and the requested topics, or all
           topics. A topic that does not exist is created if client and broker allow it, and has leaders when
           the response is sent; one request creates at most 50 topics, the others are LEADER_NOT_AVAILABLE
           until the client retries. The response omits a leader that has just closed its connection to this
           broker, so that the client retries until there is a new leader. Created topics count for the
           client's controller_mutation_rate; beyond it they are UNKNOWN_TOPIC_OR_PARTITION.
Versions:  v1 racks, internal topics, all topics by null; v2 cluster id; v4 creation can be declined; v5
           offline replicas; v7 leader epochs; v8 authorized operations; v9 flexible; v10 topic ids; v12
           topics by id.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from headrace.broker.handlers.create_topics import CREATE, require_create
from headrace.broker.handlers.describe_cluster import authorized_cluster_operations
from headrace.broker.image import TopicImage
from headrace.broker.membership.controller_client import CREATE_TOPICS_VERSIONS, new_topic, refused_topics
from headrace.broker.requests.dispatch import Context, HangUp, handles
from headrace.broker.requests.envelopes import forward
from headrace.broker.requests.requirements import on_topics
from headrace.broker.results import Encoded, Result
from headrace.broker.slices import STEP, Steps, each, free, in_slices
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.kafka_errors import NotController
from headrace.protocol.message import ZERO_UUID
from headrace.protocol.peers import UnsupportedByPeer
from headrace.protocol.schema import metadata as api
from headrace.protocol.schema.create_topics import CreateTopicsRequest, CreateTopicsResponse
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import AuthorizationFailed, Operation, ResourceType
from headrace.storage.topics import check_topic_name

_CREATION_CAN_BE_DECLINED = 4
_ALL_BY_NULL = 1
MAX_CACHED_RESPONSES = 64  # for all topics: API versions, listeners and views of principals
CREATED_TOGETHER = 50  # the maximum number of topics that one request creates
_BY_ID = 12  # v10 and v11 have the field, but it must be zero
_DESCRIBE: Final = on_topics(Operation.DESCRIBE)


@handles(ApiKey.METADATA, range(14), requires=(_DESCRIBE, *CREATE))
def metadata(request: api.MetadataRequest, context: Context) -> Steps[Result]:
    if request.topics is None or (context.version < _ALL_BY_NULL and not request.topics):
        return Result((yield from _all_topics(request, context)))
    topics = list({(topic.name, topic.topic_id): topic for topic in request.topics}.values())
    missing, refused = yield from _missing(topics, request, context)
    if missing:
        return Result(later=_create_and_reply(topics, missing, refused, request, context))
    answers = yield from _answers(topics, request, context, refused)
    return Result(_reply(request, context, answers))


def _all_topics(request: api.MetadataRequest, context: Context) -> Steps[Encoded]:
    """Return the metadata of all topics that the principal may describe.

    It comes from a cache of encoded responses, because it is large.
    """
    view = context.authorizer.view(context.principal, context.address)
    key = (
        context.version,
        context.listener.name,
        view,
        request.include_cluster_authorized_operations,
        request.include_topic_authorized_operations,
    )
    image, cache = context.broker.image, context.broker.metadata_cache
    known_at, body = cache.get(key, (-1, []))
    if known_at != image.version:
        known_at = image.version  # a change during the encoding is for the next request
        topics = []
        for number, topic in enumerate(list(image.topics.values())):
            if not number % STEP:
                yield
            if context.may(_DESCRIBE, topic.name):
                topics.append(_known(topic, request, context))
        response = _reply(request, context, topics)
        structs: list[Any] = []
        body = yield from response.encode_in_slices(context.version, structs)
        del topics, response
        yield from free(structs)
        if key not in cache and len(cache) >= MAX_CACHED_RESPONSES:
            del cache[next(iter(cache))]
        cache[key] = known_at, body
    return Encoded(body)


def _missing(
    topics: Sequence[api.MetadataRequestTopic], request: api.MetadataRequest, context: Context
) -> Steps[tuple[list[str], dict[str, ErrorCode]]]:
    """Return the names of the topics to create, and the error codes of those that must not be created."""
    missing: list[str] = []
    refused: dict[str, ErrorCode] = {}
    allowed = request.allow_auto_topic_creation or context.version < _CREATION_CAN_BE_DECLINED
    if not (allowed and context.broker.config.flag("auto.create.topics.enable")):
        return missing, refused
    known = context.broker.image.topics
    for number, topic in enumerate(topics):
        if not number % STEP:
            yield
        name = topic.name
        if name is None or topic.topic_id != ZERO_UUID or name in known or not context.may(_DESCRIBE, name):
            continue
        try:
            require_create(name, context)
            missing.append(name)
        except AuthorizationFailed as error:
            refused[name] = error.code
    return missing, refused


async def _create_and_reply(
    topics: Sequence[api.MetadataRequestTopic],
    missing: Sequence[str],
    refused: dict[str, ErrorCode],
    request: api.MetadataRequest,
    context: Context,
) -> api.MetadataResponse:
    """Create up to CREATED_TOGETHER topics; clients retry the others, which are LEADER_NOT_AVAILABLE."""
    refused |= dict.fromkeys(missing[CREATED_TOGETHER:], ErrorCode.LEADER_NOT_AVAILABLE)
    try:
        refused |= await _create(missing[:CREATED_TOGETHER], context)
    except FAILURES as error:
        refused |= dict.fromkeys(missing, error_code(error))
    answers = await in_slices(_answers(topics, request, context, refused))
    return _reply(request, context, answers)


async def _create(names: Sequence[str], context: Context) -> dict[str, ErrorCode]:
    """Create topics; return the error codes of those that failed."""
    refused = {}
    internal = context.broker.coordinators.by_topic
    for name in internal.keys() & set(names):
        try:
            await internal[name].topic.ensure()
        except FAILURES as error:
            refused[name] = error_code(error)
    others = [name for name in names if name not in internal]
    if others and context.usage is not None:
        refused |= await _create_for_client(others, context)
    elif others:
        refused |= await context.broker.controller_client.create_topics(others)
    return {name: code for name, code in refused.items() if code != ErrorCode.TOPIC_ALREADY_EXISTS}


async def _create_for_client(names: Sequence[str], context: Context) -> dict[str, ErrorCode]:
    """Create topics in the name of the client: the controller charges its controller_mutation_rate.

    As in Kafka, a topic beyond the quota does not exist yet: the client asks for it again.
    """
    request = CreateTopicsRequest(topics=[new_topic(name) for name in names], timeout_ms=0)
    try:
        version = context.broker.controller_client.choose(ApiKey.CREATE_TOPICS, CREATE_TOPICS_VERSIONS)
        response = await forward(request, context._replace(version=version))
    except (HangUp, UnsupportedByPeer) as error:
        raise NotController(str(error)) from error
    (body,) = response.body
    refused = refused_topics(CreateTopicsResponse.decode(body, version).topics)
    return {
        name: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if code == ErrorCode.THROTTLING_QUOTA_EXCEEDED else code
        for name, code in refused.items()
    }


def _answers(
    topics: Sequence[api.MetadataRequestTopic],
    request: api.MetadataRequest,
    context: Context,
    refused: Mapping[str, ErrorCode] = MappingProxyType({}),
) -> Steps[list[api.MetadataResponseTopic]]:
    def answer(topic: api.MetadataRequestTopic) -> api.MetadataResponseTopic:
        if topic.name is not None and topic.name in refused:
            return _unknown(topic, refused[topic.name])
        return _answer(topic, request, context)

    return (yield from each(answer, topics))


def _answer(
    topic: api.MetadataRequestTopic, request: api.MetadataRequest, context: Context
) -> api.MetadataResponseTopic:
    if context.version < _BY_ID and (topic.name is None or topic.topic_id != ZERO_UUID):
        return api.MetadataResponseTopic(
            error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", partitions=()
        )
    name = topic.name or ""
    if topic.topic_id != ZERO_UUID:
        if topic.topic_id not in context.broker.image.topic_names:
            return _unknown(topic, ErrorCode.UNKNOWN_TOPIC_ID)
        name = context.broker.image.topic_names[topic.topic_id]
    if not context.may(_DESCRIBE, name):
        return _unknown(topic, context.denied(_DESCRIBE, name).code)
    known = context.broker.image.topics.get(name)
    return _unknown(topic, unknown_code(name)) if known is None else _known(known, request, context)


def unknown_code(name: str) -> ErrorCode:
    """Return the error code of a topic that does not exist; its name may be invalid."""
    try:
        check_topic_name(name)
    except KafkaError as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _unknown(topic: api.MetadataRequestTopic, code: ErrorCode) -> api.MetadataResponseTopic:
    name = topic.name if topic.topic_id == ZERO_UUID else None
    return api.MetadataResponseTopic(error_code=code, name=name, topic_id=topic.topic_id, partitions=())


def _known(topic: TopicImage, request: api.MetadataRequest, context: Context) -> api.MetadataResponseTopic:
    return api.MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[_partition(topic, index, context) for index in topic.replicas],
        topic_authorized_operations=context.authorized_operations(
            ResourceType.TOPIC, topic.name, requested=request.include_topic_authorized_operations
        ),
    )


def _partition(topic: TopicImage, index: int, context: Context) -> api.MetadataResponsePartition:
    state = topic.states.get(index)
    leader = -1 if state is None or state.leader in context.broker.image.suspects else state.leader
    return api.MetadataResponsePartition(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE if leader < 0 else ErrorCode.NONE,
        partition_index=index,
        leader_id=leader,
        leader_epoch=-1 if state is None else state.leader_epoch,
        replica_nodes=topic.replicas[index],
        isr_nodes=() if state is None else state.isr,
        offline_replicas=context.broker.image.offline(topic.replicas[index]),
    )


def _reply(
    request: api.MetadataRequest, context: Context, topics: list[api.MetadataResponseTopic]
) -> api.MetadataResponse:
    image = context.broker.image
    return api.MetadataResponse(
        brokers=[
            api.MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in image.nodes(context.listener.name)
        ],
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
        cluster_authorized_operations=authorized_cluster_operations(
            context, requested=request.include_cluster_authorized_operations
        ),
    )
