"""Consumer groups: members, committed offsets and lag, resets and deletion."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal

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
from headrace.gateway.current import RawRoute
from headrace.gateway.problems import MISSING, answers, bad_request, header_text
from headrace.gateway.reach import ReachDep
from headrace.gateway.rest.bodies import INT64, PARTITIONS, Body, GroupName, Index, Name, Offset, TimeMs
from headrace.protocol.ids import TopicPartition

router = APIRouter(tags=["groups"], route_class=RawRoute, responses=answers(400, 404, 409, 503))

PartitionsByTopic = dict[Name, Annotated[list[Index], Field(max_length=PARTITIONS)]]


@router.get("/groups")
def groups(
    reach: ReachDep,
    response: Response,
    state: Annotated[list[str], Query(description=f"Only in these states: {', '.join(STATES)}.")] = [],  # noqa: B006
    type: Annotated[list[str], Query(description=f"Only of these types: {', '.join(TYPES)}.")] = [],  # noqa: A002, B006
) -> list[GroupSummary]:
    """Return all groups by name, with their states and numbers of members.

    Groups whose coordinator does not answer are left out; the header `headrace-missing` then names the broker
    and the reason.
    """
    found = reach.groups.list_groups(state, type)
    if found.missing:
        response.headers[MISSING] = header_text(found.missing)
    return list(found)


@router.get("/groups/{name}")
def group(name: GroupName, reach: ReachDep) -> Group:
    """Return the members with their assignments, and the committed offset and lag of every partition.

    `lag` is null where no offset is committed.
    """
    return reach.groups.describe([name])[0]


@router.delete("/groups/{name}", status_code=204)
def delete_group(name: GroupName, reach: ReachDep) -> Response:
    """Delete the group and its offsets; refused while it has members."""
    reach.groups.delete([name])
    return Response(status_code=204)


class ResetBody(Body):
    """The new offsets of a group.

    `offset` goes with `to: offset`, `time_ms` with `to: time`, `shift` with `to: shift`, and `offsets`
    with `to: offsets`.
    """

    to: Literal["earliest", "latest", "current", "offset", "time", "shift", "offsets"]
    offset: Offset | None = None
    time_ms: TimeMs | None = None
    shift: Annotated[StrictInt | None, Field(ge=-INT64, le=INT64)] = None
    offsets: Annotated[
        dict[Name, dict[Annotated[int, Field(ge=0)], Offset]] | None, Field(max_length=PARTITIONS)
    ] = None
    topics: Annotated[
        PartitionsByTopic | None,
        Field(
            max_length=PARTITIONS,
            description="Partitions by topic, [] for all of a topic; default: all with committed offsets.",
        ),
    ] = None
    dry_run: Annotated[bool, Field(description="Only return what would change.")] = True
    create: Annotated[bool, Field(description="Create the group if it does not exist.")] = False


@router.post("/groups/{name}/reset")
def reset_group(name: GroupName, body: ResetBody, reach: ReachDep) -> dict[str, Any]:
    """Commit other offsets; nothing changes unless `dry_run` is false.

    The group's consumers have to be stopped first. An offset outside the log becomes the nearest one inside.
    """
    scope: Mapping[str, list[int]] | None = body.topics
    if body.to == "offsets":
        if body.topics is not None:
            raise bad_request("offsets already name the topics: leave topics out")
        scope = {topic: list(offsets) for topic, offsets in (body.offsets or {}).items()}
    plan = reach.groups.plan_reset(name, _target(body), scope, may_be_new=body.create)
    if not plan:
        raise ClientError(f"group {name} has no committed offsets: name the topics")
    if not body.dry_run:
        reach.groups.reset(name, plan)
    return {"group": name, "executed": not body.dry_run, "partitions": plan}


def _target(body: ResetBody) -> Target:
    """Return the target of the reset; raise a Problem if its field is missing, or another field is given."""
    field = _FIELDS.get(body.to)
    for each in ("offset", "time_ms", "shift", "offsets"):
        given = getattr(body, each) is not None
        if given != (each == field):
            raise bad_request(
                f"{body.to} needs {field}" if each == field else f"{each} does not go with {body.to}"
            )
    return _TARGETS[body.to](body)


_FIELDS: Final = {"offset": "offset", "time": "time_ms", "shift": "shift", "offsets": "offsets"}
_TARGETS: Final[Mapping[str, Callable[[ResetBody], Target]]] = {
    "earliest": lambda _: ToEarliest(),
    "latest": lambda _: ToLatest(),
    "current": lambda _: ToCurrent(),
    "offset": lambda body: ToOffset(body.offset or 0),
    "time": lambda body: ToTime(body.time_ms or 0),
    "shift": lambda body: ShiftBy(body.shift or 0),
    "offsets": lambda body: ToEach(
        {
            TopicPartition(topic, index): offset
            for topic, each in (body.offsets or {}).items()
            for index, offset in each.items()
        }
    ),
}


class OffsetsBody(Body):
    """Partitions by topic; [] is every partition of the topic with a committed offset."""

    topics: Annotated[PartitionsByTopic, Field(min_length=1, max_length=PARTITIONS)]


@router.delete("/groups/{name}/offsets")
def delete_group_offsets(name: GroupName, body: OffsetsBody, reach: ReachDep) -> list[Reset]:
    """Delete and return committed offsets; refused while members of the group read the topic."""
    committed = {
        TopicPartition(partition.topic, partition.partition): partition.committed
        for partition in reach.groups.describe([name])[0].partitions
        if partition.committed is not None
    }
    partitions: list[TopicPartition] = []
    for topic, indexes in body.topics.items():
        named = [TopicPartition(topic, index) for index in indexes]
        partitions += named or [each for each in committed if each.topic == topic]
    for partition in partitions:
        if partition not in committed:
            raise ClientError(f"group {name} has committed no offset for {partition}")
    reach.groups.delete_offsets(name, partitions)
    return [
        Reset(topic=partition.topic, partition=partition.partition, old=committed[partition], new=-1)
        for partition in partitions
    ]
