"""Writing messages to a topic."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter
from pydantic import Discriminator, Field, StrictStr, Tag

from headrace.client.records.one_by_one import Record
from headrace.http.gateway.asking import Body, Index, TimeMs, TopicName, example
from headrace.http.gateway.delivery import Delivered, Outcome
from headrace.http.gateway.encoding import BadValue, as_binary, as_given, as_json, as_text
from headrace.http.gateway.hub import Shared
from headrace.http.problems import FORM, Problem, answers, code_of

router = APIRouter(tags=["messages"])

AT_ONCE: Final = 10_000  # messages in a request
HEADERS: Final = 100  # of a message
_ONE: Final = f"{FORM}message"
_SEVERAL: Final = f"{FORM}messages"
_REFUSALS = answers(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.SERVICE_UNAVAILABLE,
)

Encoding = Annotated[
    Literal["auto", "text", "json", "base64"],
    Field(description="`auto`: a string is text, null is nothing at all, everything else is JSON."),
]
_ENCODERS: Final[Mapping[str, Callable[[Any], bytes | None]]] = {
    "auto": as_given,
    "text": as_text,
    "json": as_json,
    "base64": as_binary,
}


class HeaderBody(Body):
    """A header."""

    name: StrictStr
    value: StrictStr | None = None
    encoding: Literal["text", "base64"] = "text"


class MessageBody(Body):
    """A message to be written; without a value it is a tombstone, by which compaction deletes its key."""

    model_config = example(
        key="alice", value={"item": "tea"}, headers=[{"name": "from", "value": "the docs"}]
    )

    key: Any = None
    value: Any = None
    headers: Annotated[list[HeaderBody], Field(default_factory=list, max_length=HEADERS)]
    partition: Annotated[Index | None, Field(description="By the key if this is left out.")] = None
    timestamp_ms: TimeMs | None = None
    encoding: Encoding = "auto"
    key_encoding: Encoding = "auto"


class MessagesBody(Body):
    """Messages to be written."""

    messages: Annotated[list[MessageBody], Field(min_length=1, max_length=AT_ONCE)]


def _form(given: object) -> str:
    """Which of the two somebody has sent, so that what is wrong is told of that one alone."""
    several = isinstance(given, MessagesBody) or (isinstance(given, dict) and "messages" in given)
    return _SEVERAL if several else _ONE


OneOrSeveral = Annotated[
    Annotated[MessageBody, Tag(_ONE)] | Annotated[MessagesBody, Tag(_SEVERAL)], Discriminator(_form)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """Where a message is, or why it is nowhere."""

    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    error_code: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceAnswer:
    """What has become of each message, in their order."""

    topic: str
    messages: tuple[Produced, ...]


@router.post("/topics/{name}/messages", responses=_REFUSALS, summary="Write messages")
async def produce(name: TopicName, asked: OneOrSeveral, hub: Shared) -> ProduceAnswer:
    """One, or several as `{"messages": [...]}`. Answered when all in-sync replicas have them.

    If none could be written the answer is a refusal, if some could not be it says which.
    """
    bodies = asked.messages if isinstance(asked, MessagesBody) else [asked]
    await hub.topics.partitions(name)
    for partition in {body.partition for body in bodies}:
        await hub.topics.check(name, partition)
    outcomes = await hub.send(name, [_record(body, at) for at, body in enumerate(bodies)])
    failed = [each for each in outcomes if not isinstance(each, Delivered)]
    if len(failed) == len(outcomes):
        raise failed[0].error
    return ProduceAnswer(topic=name, messages=tuple(map(_produced, outcomes)))


def _record(body: MessageBody, at: int) -> Record:
    try:
        return Record(
            key=_ENCODERS[body.key_encoding](body.key),
            value=_ENCODERS[body.encoding](body.value),
            headers=[(_header_name(each), _ENCODERS[each.encoding](each.value)) for each in body.headers],
            partition=body.partition,
            timestamp_ms=body.timestamp_ms,
        )
    except BadValue as error:
        raise Problem(HTTPStatus.BAD_REQUEST, 40002, f"message {at}: {error}") from None


def _header_name(header: HeaderBody) -> str:
    as_text(header.name)
    return header.name


def _produced(outcome: Outcome) -> Produced:
    if isinstance(outcome, Delivered):
        return Produced(partition=outcome.partition, offset=outcome.offset, timestamp_ms=outcome.timestamp_ms)
    return Produced(error_code=code_of(outcome.error)[1], error=str(outcome.error))
