"""Consumer groups: the list with their lag; one group with its members and offsets."""

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response

from headrace.client.errors import NoSuchGroup
from headrace.client.groups.group import Group
from headrace.gateway.console.pages import PageRoute, page
from headrace.gateway.console.tables import by_attributes, table_of
from headrace.gateway.current import clients_of
from headrace.gateway.reach import Reach, ReachDep
from headrace.gateway.rest.bodies import GROUP

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
    uncommitted: int = 0  # partitions that the lag leaves out


_LIST_COLUMNS = by_attributes("name", "state", "members", "lag")


@router.get("/ui/groups")
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


_PARTITION_COLUMNS = {
    "place": lambda row: (row.topic, row.partition),
    **by_attributes("committed", "lag", end="log_end"),
}


@router.get("/ui/groups/{name:path}")
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
