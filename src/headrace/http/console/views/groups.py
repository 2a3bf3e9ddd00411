"""Every consumer group, and how far behind it is."""

from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.client.errors import NoSuchGroup
from headrace.client.groups.group import Group, GroupSummary
from headrace.http.console.pages import PageRoute, page
from headrace.http.console.tables import table_of
from headrace.http.reach import Reach, Reached

FEW: Final = 200  # groups, of which all are asked how far they are: each takes a request

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A group in a line; topics and lag are unknown until it is asked."""

    name: str
    state: str
    members: int
    topics: tuple[str, ...] = ()
    lag: int | None = None


COLUMNS = {
    "name": lambda each: each.name,
    "state": lambda each: each.state,
    "members": lambda each: each.members,
    "lag": lambda each: each.lag,
}


@router.get("/ui/groups")
def groups(request: Request, reach: Reached) -> Response:
    """With few groups all are asked for their lag, with many those that are on the page."""
    lines = request.app.state.console.groups.get(request, lambda: _lines(reach))
    few = len(lines) <= FEW
    table = table_of(
        request,
        lines,
        COLUMNS,
        text=lambda each: " ".join((each.name, each.state, *each.topics)),
        sort="name",
    )
    rows = table.rows if few else _asked(reach, [each.name for each in table.rows])
    return page(request, "groups.html", title="Groups", table=table.with_rows(rows), few=few)


def described(reach: Reach) -> tuple[list[Group], int]:
    """Every group in full, at most a few hundred; and how many were left out."""
    names = [each.name for each in reach.groups.list_groups()]
    return _existing(reach, names[:FEW]), max(0, len(names) - FEW)


def _lines(reach: Reach) -> list[Line]:
    found = reach.groups.list_groups()
    if len(found) <= FEW:
        return _asked(reach, [each.name for each in found])
    return [_summary(each) for each in found]


def _summary(found: GroupSummary) -> Line:
    return Line(name=found.name, state=found.state, members=found.members)


def _asked(reach: Reach, names: list[str]) -> list[Line]:
    return [
        Line(
            name=each.name,
            state=each.state,
            members=len(each.members),
            topics=tuple(sorted({at.topic for at in each.partitions})),
            lag=each.total_lag,
        )
        for each in _existing(reach, names)
    ]


def _existing(reach: Reach, names: list[str]) -> list[Group]:
    """Those of `names` that have not gone meanwhile."""
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
