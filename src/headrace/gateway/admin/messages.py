"""Messages: produce to a topic."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from pydantic import Discriminator, Field, StrictStr, Tag

from headrace.client.records.one_by_one import Record
from headrace.client.serializers.codecs.base import BadValue
from headrace.gateway.problems import FORM, answers, bad_request, code_of
from headrace.gateway.rest.bodies import Body, Index, TimeMs, TopicName
from headrace.gateway.rest.delivery import Delivered
from headrace.gateway.rest.hub import HubDep
from headrace.gateway.rest.schemas import Schemas, framed
from headrace.gateway.rest.values import as_binary, as_given, as_json, as_text, checked_text

router = APIRouter(tags=["messages"], responses=answers(400, 404, 422, 503))

MAX_MESSAGES: Final = 10_000  # in a request
MAX_HEADERS: Final = 100  # of a message
_ONE: Final = f"{FORM}message"
_SEVERAL: Final = f"{FORM}messages"

Part = Literal["key", "value"]
Encoding = Annotated[
    Literal["auto", "text", "json", "base64", "schema"],
    Field(
        description="`auto`: a string is text, null is no value, everything else is JSON. `schema`: JSON, as "
        "a search shows it, that is encoded by the latest schema of the subject TOPIC-value or TOPIC-key."
    ),
]
_ENCODERS: Final[Mapping[str, Callable[[Any], bytes | None]]] = {
    "auto": as_given,
    "text": as_text,
    "json": as_json,
    "base64": as_binary,
}


class HeaderBody(Body):
    name: StrictStr
    value: StrictStr | None = None
    encoding: Literal["text", "base64"] = "text"


class MessageBody(Body):
    """A message to produce; without a value it is a tombstone, with which compaction deletes its key."""

    key: Any = None
    value: Any = None
    headers: Annotated[list[HeaderBody], Field(default_factory=list, max_length=MAX_HEADERS)]
    partition: Annotated[Index | None, Field(description="If left out, the key decides.")] = None
    timestamp_ms: TimeMs | None = None
    encoding: Encoding = "auto"
    key_encoding: Encoding = "auto"


class MessagesBody(Body):
    messages: Annotated[list[MessageBody], Field(min_length=1, max_length=MAX_MESSAGES)]


def _form(given: object) -> str:
    """Return the tag of the body's form, so that a validation error is about that form alone."""
    several = isinstance(given, MessagesBody) or (isinstance(given, dict) and "messages" in given)
    return _SEVERAL if several else _ONE


OneOrSeveral = Annotated[
    Annotated[MessageBody, Tag(_ONE)] | Annotated[MessagesBody, Tag(_SEVERAL)], Discriminator(_form)
]


@router.post("/topics/{name}/messages")
async def produce(name: TopicName, body: OneOrSeveral, hub: HubDep) -> dict[str, Any]:
    """Produce one message, or several as `{"messages": [...]}`.

    The response is sent when all in-sync replicas have the messages. If no message could be produced it is an
    error; if some could not, it says which.
    """
    bodies = body.messages if isinstance(body, MessagesBody) else [body]
    await hub.topics.partitions(name)
    for partition in {each.partition for each in bodies}:
        await hub.topics.check(name, partition)
    encoded: dict[tuple[int, Part], bytes] = {}
    if any("schema" in {each.encoding, each.key_encoding} for each in bodies):
        encoded = await run_in_threadpool(_by_schemas, hub.schemas, name, bodies)
    outcomes = await hub.send(name, [_record(each, index, encoded) for index, each in enumerate(bodies)])
    failed = [outcome for outcome in outcomes if not isinstance(outcome, Delivered)]
    if len(failed) == len(outcomes):
        raise failed[0].error
    produced: list[dict[str, Any]] = [
        asdict(outcome)
        if isinstance(outcome, Delivered)
        else {"error_code": code_of(outcome.error), "error": str(outcome.error)}
        for outcome in outcomes
    ]
    fields = ("partition", "offset", "timestamp_ms", "error_code", "error")
    return {"topic": name, "messages": [dict.fromkeys(fields) | each for each in produced]}


def _by_schemas(schemas: Schemas, topic: str, bodies: Sequence[MessageBody]) -> dict[tuple[int, Part], bytes]:
    """Return the keys and values that are encoded by schemas, by the index of the message and its part."""
    found: dict[tuple[int, Part], bytes] = {}
    values: dict[Part, list[tuple[int, Any]]] = {
        "key": [(i, each.key) for i, each in enumerate(bodies) if each.key_encoding == "schema"],
        "value": [(i, each.value) for i, each in enumerate(bodies) if each.encoding == "schema"],
    }
    for part, indexed in values.items():
        present = [(index, value) for index, value in indexed if value is not None]
        if present:
            subject = f"{topic}-{part}"
            schema_id = schemas.version(subject, None).id
            codec = schemas.by_id(schema_id, subject)
            try:
                encoded = codec.encode([value for _, value in present], plain=True)
            except BadValue as error:
                raise bad_request(f"message {present[error.index][0]}: {error}") from None
            for (index, _), data in zip(present, encoded, strict=True):
                found[index, part] = framed(schema_id, data)
    return found


def _record(body: MessageBody, index: int, encoded: Mapping[tuple[int, Part], bytes]) -> Record:
    def data_of(part: Part, value: Any, encoding: str) -> bytes | None:
        return encoded.get((index, part)) if encoding == "schema" else _ENCODERS[encoding](value)

    try:
        return Record(
            key=data_of("key", body.key, body.key_encoding),
            value=data_of("value", body.value, body.encoding),
            headers=[
                (checked_text(header.name), _ENCODERS[header.encoding](header.value))
                for header in body.headers
            ],
            partition=body.partition,
            timestamp_ms=body.timestamp_ms,
        )
    except BadValue as error:
        raise bad_request(f"message {index}: {error}") from None
