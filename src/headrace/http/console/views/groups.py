"""The list of consumer groups and their lag."""

from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.client.errors import NoSuchGroup
from headrace.client.groups.group import Group
from headrace.http.console.pages import PageRoute, page
from headrace.http.console.tables import table_of
from headrace.http.reach import Reach, ReachDep

FEW: Final = 200  # groups, up to which all are described for the list: each takes a request

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A row of the list; topics and lag are not known until the group is described."""

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
def groups(request: Request, reach: ReachDep) -> Response:
    """Few groups are all described; of many, those on the page."""
    found = request.app.state.console.groups.get(request, lambda: _list(reach))
    few = len(found) <= FEW
    table = table_of(
        request,
        found,
        COLUMNS,
        text=lambda each: " ".join((each.name, each.state, *each.topics)),
        sort="name",
    )
    rows = table.rows if few else _rows(reach, [each.name for each in table.rows])
    return page(request, "groups.html", title="Groups", table=table.with_rows(rows), few=few)


def described(reach: Reach) -> tuple[list[Group], int]:
    """Return the first FEW groups, described, and how many groups are left out."""
    names = [each.name for each in reach.groups.list_groups()]
    return _existing(reach, names[:FEW]), max(0, len(names) - FEW)


def _list(reach: Reach) -> list[GroupRow]:
    found = reach.groups.list_groups()
    if len(found) <= FEW:
        return _rows(reach, [each.name for each in found])
    return [GroupRow(name=each.name, state=each.state, members=each.members) for each in found]


def _rows(reach: Reach, names: list[str]) -> list[GroupRow]:
    return [
        GroupRow(
            name=each.name,
            state=each.state,
            members=len(each.members),
            topics=tuple(sorted({at.topic for at in each.partitions})),
            lag=each.total_lag,
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
