"""Consumer groups: who is in them, how far they are, and moving them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field, StrictInt

from headrace.client.errors import ClientError
from headrace.client.groups.group import STATES, TYPES, Group, GroupSummary
from headrace.client.groups.reset import (
    Reset,
    ShiftBy,
    Target,
    ToCurrent,
    ToEach,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
)
from headrace.http.gateway.asking import INT64, PLACES, Body, GroupName, Index, Name, Offset, TimeMs, example
from headrace.http.problems import Problem, answers
from headrace.http.raw_names import RawRoute
from headrace.http.reach import Reached
from headrace.protocol.ids import TopicPartition

MISSING: Final = "headrace-missing"  # a header: who has not answered

router = APIRouter(tags=["groups"], route_class=RawRoute)
_REFUSALS = answers(
    HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE
)

Scope = dict[Name, Annotated[list[Index], Field(max_length=PLACES)]]


@router.get("/groups", responses=answers(HTTPStatus.SERVICE_UNAVAILABLE), summary="Every group")
def groups(
    reach: Reached,
    response: Response,
    state: Annotated[list[str], Query(description=f"Only in these states: {', '.join(STATES)}.")] = [],  # noqa: B006
    type: Annotated[list[str], Query(description=f"Only of these types: {', '.join(TYPES)}.")] = [],  # noqa: A002, B006
) -> list[GroupSummary]:
    """By name, each with its state and how many members it has.

    Groups whose coordinator does not answer are not among them: a header `headrace-missing` says which broker
    that is, and why.
    """
    found = reach.groups.list_groups(state, type)
    if found.missing:
        response.headers[MISSING] = "; ".join(found.missing).encode("ascii", "replace").decode()
    return list(found)


@router.get("/groups/{name}", responses=_REFUSALS, summary="A group")
def group(name: GroupName, reach: Reached) -> Group:
    """Its members and what is assigned to them; committed offsets and lag of every partition.

    `lag` is null where nothing is committed.
    """
    return reach.groups.describe([name])[0]


@router.delete(
    "/groups/{name}", status_code=HTTPStatus.NO_CONTENT, responses=_REFUSALS, summary="Delete a group"
)
def delete_group(name: GroupName, reach: Reached) -> Response:
    """With its offsets; refused while it has members."""
    reach.groups.delete([name])
    return Response(status_code=HTTPStatus.NO_CONTENT)


class ResetBody(Body):
    """Where the group is to go on.

    `offset` goes with `to: offset`, `time_ms` with `to: time`, `shift` with `to: shift`, and `offsets`
    with `to: offsets`.
    """

    model_config = example(to="earliest", topics={"orders": []}, dry_run=True)

    to: Literal["earliest", "latest", "current", "offset", "time", "shift", "offsets"]
    offset: Offset | None = None
    time_ms: TimeMs | None = None
    shift: Annotated[StrictInt | None, Field(ge=-INT64, le=INT64)] = None
    offsets: Annotated[
        dict[Name, dict[Annotated[int, Field(ge=0)], Offset]] | None,
        Field(max_length=PLACES, examples=[{"orders": {"0": 120}}]),
    ] = None
    topics: Annotated[
        Scope | None,
        Field(
            max_length=PLACES,
            description="Partitions by topic, [] for all of it; without this, all that is committed.",
            examples=[{"orders": [0, 1]}],
        ),
    ] = None
    dry_run: Annotated[bool, Field(description="Only say what would change.")] = True
    create: Annotated[bool, Field(description="If there is no such group, let it begin there.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetAnswer:
    """What the reset has changed, or would."""

    group: str
    executed: bool
    partitions: tuple[Reset, ...]


@router.post("/groups/{name}/reset", responses=_REFUSALS, summary="Move a group's offsets")
def reset_group(name: GroupName, asked: ResetBody, reach: Reached) -> ResetAnswer:
    """Nothing is changed unless `dry_run` is false. Its consumers have to be stopped before.

    An offset outside the log becomes the nearest one inside.
    """
    scope: Mapping[str, list[int]] | None = asked.topics
    if asked.to == "offsets":
        if asked.topics is not None:
            raise Problem(HTTPStatus.BAD_REQUEST, 40002, "offsets say which topics: leave topics out")
        scope = {topic: list(offsets) for topic, offsets in (asked.offsets or {}).items()}
    plan = reach.groups.plan_reset(name, target(asked), scope, may_be_new=asked.create)
    if not plan:
        raise ClientError(f"group {name} has committed nothing: say which topics")
    if not asked.dry_run:
        reach.groups.reset(name, plan)
    return ResetAnswer(group=name, executed=not asked.dry_run, partitions=tuple(plan))


def target(asked: ResetBody) -> Target:
    """Where to, in the client's words; Problem if what goes with it is missing, or too much."""
    field = _FIELDS.get(asked.to)
    for each in ("offset", "time_ms", "shift", "offsets"):
        given = getattr(asked, each) is not None
        if given != (each == field):
            said = f"{asked.to} goes with {field}" if each == field else f"{each} does not go with {asked.to}"
            raise Problem(HTTPStatus.BAD_REQUEST, 40002, said)
    return _TARGETS[asked.to](asked)


_FIELDS: Final = {"offset": "offset", "time": "time_ms", "shift": "shift", "offsets": "offsets"}
_TARGETS: Final[Mapping[str, Callable[[ResetBody], Target]]] = {
    "earliest": lambda _: ToEarliest(),
    "latest": lambda _: ToLatest(),
    "current": lambda _: ToCurrent(),
    "offset": lambda asked: ToOffset(asked.offset or 0),
    "time": lambda asked: ToTime(asked.time_ms or 0),
    "shift": lambda asked: ShiftBy(asked.shift or 0),
    "offsets": lambda asked: ToEach(
        {
            TopicPartition(topic, index): offset
            for topic, each in (asked.offsets or {}).items()
            for index, offset in each.items()
        }
    ),
}


class OffsetsBody(Body):
    """Partitions by topic; [] is every partition of it that the group has committed."""

    topics: Annotated[Scope, Field(min_length=1, max_length=PLACES, examples=[{"orders": []}])]


@router.delete("/groups/{name}/offsets", responses=_REFUSALS, summary="Forget committed offsets")
def delete_group_offsets(name: GroupName, asked: OffsetsBody, reach: Reached) -> list[Reset]:
    """Of some partitions; refused while members of the group read the topic. Returns what is forgotten."""
    committed = {
        TopicPartition(each.topic, each.partition): each.committed
        for each in reach.groups.describe([name])[0].partitions
        if each.committed is not None
    }
    wanted = [
        place
        for topic, indexes in asked.topics.items()
        for place in (
            [TopicPartition(topic, index) for index in indexes]
            or [at for at in committed if at.topic == topic]
        )
    ]
    for place in wanted:
        if place not in committed:
            raise ClientError(f"group {name} has committed nothing for {place}")
    reach.groups.delete_offsets(name, wanted)
    return [
        Reset(topic=place.topic, partition=place.partition, old=committed[place], new=-1) for place in wanted
    ]
