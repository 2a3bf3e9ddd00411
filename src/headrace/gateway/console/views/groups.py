"""Consumer groups: the list with their lag; one group with its members, offsets, and lag over time."""

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response
from pydantic import BaseModel

from headrace.client.errors import NoSuchGroup
from headrace.client.groups.group import Group
from headrace.gateway.console.pages import PageRoute, page
from headrace.gateway.console.sampling import EVERY_S, LagSampler, Sample
from headrace.gateway.console.tables import by_attributes, table_of
from headrace.gateway.current import RawRoute, clients_of
from headrace.gateway.problems import answers
from headrace.gateway.reach import Reach, ReachDep
from headrace.gateway.rest.bodies import GROUP, GroupName

FEW: Final = 200  # groups, up to which all are described for the list: each takes a request

router = APIRouter(route_class=RawRoute)
pages = APIRouter(route_class=PageRoute, include_in_schema=False)

# -- the list --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A row of the list; topics and lag are not known until the group is described."""

    name: str
    state: str
    members: int
    topics: tuple[str, ...] = ()
    lag: int | None = None
    uncommitted: int = 0  # partitions that the lag leaves out


_LIST_COLUMNS = by_attributes("name", "state", "members", "lag")


@pages.get("/ui/groups")
def groups(request: Request, reach: ReachDep) -> Response:
    """Few groups are all described; of many, those on the page."""

    def list_groups() -> list[GroupRow]:
        listed = reach.groups.list_groups()
        if len(listed) <= FEW:
            return _rows(reach, [group.name for group in listed])
        return [GroupRow(name=group.name, state=group.state, members=group.members) for group in listed]

    found = clients_of(request).console.groups.get(request, list_groups)
    few = len(found) <= FEW
    table = table_of(
        request,
        found,
        _LIST_COLUMNS,
        text=lambda row: " ".join((row.name, row.state, *row.topics)),
        sort="name",
    )
    rows = table.rows if few else _rows(reach, [row.name for row in table.rows])
    return page(request, "groups.html", title="Groups", table=table.with_rows(rows), few=few)


def described(reach: Reach) -> tuple[list[Group], int]:
    """Return the first FEW groups, described, and how many groups are left out."""
    names = [each.name for each in reach.groups.list_groups()]
    return _existing(reach, names[:FEW]), max(0, len(names) - FEW)


def _rows(reach: Reach, names: list[str]) -> list[GroupRow]:
    return [
        GroupRow(
            name=each.name,
            state=each.state,
            members=len(each.members),
            topics=tuple(sorted({at.topic for at in each.partitions})),
            lag=each.known_lag,
            uncommitted=each.uncommitted,
        )
        for each in _existing(reach, names)
    ]


def _existing(reach: Reach, names: list[str]) -> list[Group]:
    """Return the described groups of `names` that still exist."""
    try:
        return reach.groups.describe(names)
    except NoSuchGroup:
        found = []
        for name in names:
            try:
                found += reach.groups.describe([name])
            except NoSuchGroup:
                continue
        return found


# -- one group -------------------------------------------------------------------------------------

_PARTITION_COLUMNS = {
    "place": lambda row: (row.topic, row.partition),
    **by_attributes("committed", "lag", end="log_end"),
}


@pages.get("/ui/groups/{name:path}")
def group(
    request: Request, name: Annotated[str, Path(min_length=1, max_length=GROUP)], reach: ReachDep
) -> Response:
    found = reach.groups.describe([name])[0]
    return page(
        request,
        "group.html",
        title=name,
        group=found,
        table=table_of(
            request, found.partitions, _PARTITION_COLUMNS, text=lambda row: row.topic, sort="place"
        ),
        most=max((partition.lag or 0 for partition in found.partitions), default=0),
        clients={member.member_id: member.client_id or member.member_id for member in found.members},
        topics=sorted({partition.topic for partition in found.partitions}),
    )


class Series(BaseModel):
    """A topic's lag at each of the times; null where the cluster did not answer."""

    name: str
    values: list[int | None]


class LagHistory(BaseModel):
    """A group's lag over time."""

    group: str
    every_ms: int
    times: list[int]
    series: list[Series]


@router.get(
    "/api/v1/groups/{name}/lag-history",
    tags=["groups"],
    summary="Get a group's lag over time",
    responses=answers(400, 404, 503),
)
def lag_history(name: GroupName, request: Request) -> LagHistory:
    """Return the lag by topic since the first such request; each request keeps it sampled for ten minutes."""
    sampler: LagSampler = clients_of(request).console.lags
    return history_of(name, sampler.watch(name))


def history_of(name: str, samples: list[Sample]) -> LagHistory:
    """Return samples as series; the lag of a topic is null while the group had no offsets of it."""
    newest = next((sample.topics for sample in reversed(samples) if sample.topics is not None), {})
    topics = dict.fromkeys([*newest, *(topic for sample in samples for topic in sample.topics or ())])
    return LagHistory(
        group=name,
        every_ms=int(EVERY_S * 1000),
        times=[sample.at_ms for sample in samples],
        series=[
            Series(
                name=topic,
                values=[None if sample.topics is None else sample.topics.get(topic) for sample in samples],
            )
            for topic in topics
        ],
    )


router.include_router(pages)
