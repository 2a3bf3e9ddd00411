"""Findings about consumer groups, from two descriptions a moment apart. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headrace.client.doctor.diagnosis import Area, Finding, some
from headrace.client.groups.group import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """A group at two times."""

    name: str
    members: int
    state: str
    lag_before: int
    lag: int
    committed_before: int  # the sum of its committed offsets
    committed: int


def between(before: Group, after: Group) -> GroupFacts:
    return GroupFacts(
        name=after.name,
        members=len(after.members),
        state=after.state,
        lag_before=before.total_lag,
        lag=after.total_lag,
        committed_before=sum(partition.committed or 0 for partition in before.partitions),
        committed=sum(partition.committed or 0 for partition in after.partitions),
    )


def examine(area: Area, groups: Sequence[GroupFacts]) -> Iterator[Finding]:
    """Yield findings about groups that fall behind, and groups without members."""
    stuck = [each for each in groups if each.members and each.lag and each.committed <= each.committed_before]
    growing = [each for each in groups if each.members and each not in stuck and each.lag > each.lag_before]
    left = [group for group in groups if not group.members and group.lag]
    if growing:
        yield area.warning(
            "lag",
            f"{_named(growing)} commits, and its lag grows: records are written faster than it reads.",
            "Start more consumers, up to one for each partition, or profile the consumers.",
        )
    if stuck:
        yield area.warning(
            "lag",
            f"{_named(stuck)} has members and lag, and committed nothing meanwhile.",
            "Check again in a minute; if nothing has changed, its consumers hang or do not commit.",
        )
    if left:
        yield area.warning(
            "abandoned",
            f"{_named(left)} has lag, and no members.",
            "Start its consumers, or delete the group with `headrace group delete` if it is not needed.",
        )
    if not growing and not stuck and not left:
        said = "There are no groups." if not groups else f"{len(groups):,} of {len(groups):,} groups keep up."
        yield area.ok("groups", said)


def _named(groups: Sequence[GroupFacts]) -> str:
    worst = sorted(groups, key=lambda each: -each.lag)
    return some(f"{each.name} (lag {each.lag:,})" for each in worst)
