"""How groups look on a terminal of 80 columns."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from headrace.cli.session import UNKNOWN, grouped, table, together
from headrace.cli.texts import count
from headrace.client.groups.group import Group, GroupSummary, Member

if TYPE_CHECKING:
    from rich.console import RenderableType

_SHORTEST: Final = 8  # characters of a member id


def draw_groups(groups: Sequence[GroupSummary], *, filtered: bool) -> "RenderableType":
    """A line for each group."""
    if not groups:
        return "there is no such group" if filtered else "there are no groups"
    return table(
        ["group", "state", "type", "members"],
        [(each.name, each.state, each.type, each.members) for each in groups],
    )


def draw_group(found: Group) -> "RenderableType":
    """A line for each partition, and for each member without one; then what that comes to."""
    columns = ["topic", "partition", "committed", "log end", "lag", "member", "client id", "host"]
    rows = _rows(found)
    if not found.members:
        columns, rows = columns[:5], [row[:5] for row in rows]
    parts: list[RenderableType] = [_head(found)]
    if rows:
        parts.append(table(columns, rows))
    parts.append("\n".join(_sums(found)))
    return together(parts)


def _rows(found: Group) -> list[Sequence[object]]:
    shown = short_names(found.members)
    by_id = {member.member_id: member for member in found.members}
    partitions = [
        [
            each.topic,
            each.partition,
            *map(_or_unknown, (each.committed, each.log_end, each.lag)),
            *_who(by_id.get(each.member_id or ""), shown),
        ]
        for each in found.partitions
    ]
    idle = [member for member in found.members if not member.assignment]
    return [
        *grouped(partitions),
        *([_nothing(found), *[UNKNOWN] * 4, *_who(member, shown)] for member in idle),
    ]


def draw_members(found: Group) -> "RenderableType":
    """A line for each member with what is assigned to it."""
    shown = short_names(found.members)
    rows = [
        (*_who(member, shown), member.partitions, assignment(member) or _nothing(found))
        for member in found.members
    ]
    parts: list[RenderableType] = [_head(found)]
    if rows:
        parts.append(table(["member", "client id", "host", "partitions", "assignment"], rows))
    if sentence := idle_sentence(found):
        parts.append(sentence)
    return together(parts)


def short_names(members: Iterable[Member]) -> dict[str, str]:
    """What to call each member: its instance id if it has one, else so much of its id as tells them apart.

    A client's name in front of the id, which they may all share, is left out.
    """
    tails = {member.member_id: member.member_id.removeprefix(f"{member.client_id}-") for member in members}
    length = _SHORTEST
    while len({tail[:length] for tail in tails.values()}) < len(set(tails.values())):
        length += 1
    return {member.member_id: member.instance_id or tails[member.member_id][:length] for member in members}


def assignment(member: Member) -> str:
    """`orders:0-2,5 payments:1`"""
    return " ".join(f"{each.topic}:{spans(each.partitions)}" for each in member.assignment)


def spans(numbers: Sequence[int]) -> str:
    """`0-2,5` of 0, 1, 2, 5."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def idle_sentence(found: Group) -> str | None:
    """How many members have nothing to do, and why."""
    idle, members = found.idle_members, len(found.members)
    if not idle:
        return None
    if found.state != "Stable":
        return "the group is rebalancing: its members get their partitions when it is stable"
    assigned = sum(member.partitions for member in found.members)
    if assigned == 0:
        why = "there is no partition in what they subscribe to"
    elif assigned < members:
        why = "there are more members than partitions"
    else:
        why = "no partition of what they subscribe to is left"
    return f"{idle} of {count(members, 'member')} {'is' if idle == 1 else 'are'} idle: {why}"


def _nothing(found: Group) -> str:
    return "(idle)" if found.state == "Stable" else UNKNOWN


def _who(member: Member | None, shown: dict[str, str]) -> list[object]:
    return [UNKNOWN] * 3 if member is None else [shown[member.member_id], member.client_id, member.host]


def _or_unknown(value: object) -> object:
    return UNKNOWN if value is None else value


def _head(found: Group) -> str:
    members = count(len(found.members), "member") if found.members else "no members"
    assignor = f", assignor {found.assignor}" if found.assignor and found.members else ""
    where = f"coordinator {found.coordinator.id} at {found.coordinator.host}:{found.coordinator.port}"
    return f"{found.name}: {found.state}, {members}\ntype {found.type}{assignor}, {where}"


def _sums(found: Group) -> list[str]:
    new = sum(each.committed is None for each in found.partitions)
    beside = f", not counting {count(new, 'partition')} with nothing committed" if new else ""
    lag = f"total lag {found.total_lag:,}{beside}" if found.partitions else "nothing is committed"
    idle = idle_sentence(found)
    return [lag] if idle is None else [lag, idle]
