"""Lag over time: who is watched, for how long, and what is kept."""

from collections.abc import Sequence

import pytest

from headrace.client.errors import NoSuchGroup, Unreachable
from headrace.client.groups.group import Group, Progress
from headrace.client.wire.requests import Coordinator
from headrace.gateway.console.sampling import (
    KEPT,
    TOPICS,
    WATCHED,
    LagSampler,
    Sample,
    TooManyWatched,
    sample,
)
from headrace.gateway.console.views.groups import history_of


def group(name: str, **lags: int | None) -> Group:
    places = [
        Progress(topic=topic, partition=0, committed=0, log_end=lag, lag=lag, member_id=None)
        for topic, lag in lags.items()
    ]
    return Group(
        name=name,
        state="Empty",
        type="classic",
        assignor=None,
        coordinator=Coordinator(id=1, host="h", port=1),
        members=(),
        idle_members=0,
        partitions=tuple(places),
        total_lag=sum(lag or 0 for lag in lags.values()),
    )


class Cluster:
    """Groups that answer, or do not."""

    def __init__(self) -> None:
        self.lag = 5
        self.away = False
        self.gone: set[str] = set()

    def describe(self, names: Sequence[str]) -> list[Group]:
        if self.away:
            raise Unreachable("no broker answers")
        for name in names:
            if name in self.gone:
                raise NoSuchGroup(name)
        return [group(name, orders=self.lag) for name in names]


def test_looking_at_a_group_has_it_sampled_and_gaps_are_kept_as_gaps() -> None:
    cluster = Cluster()
    sampler = LagSampler(cluster.describe, now_s=lambda: 100.0)
    assert sampler.watch("billing") == [Sample(100_000, {"orders": 5})]
    cluster.away = True
    sampler.take(["billing"])
    cluster.away, cluster.lag = False, 9
    sampler.take(["billing"])
    found = history_of("billing", sampler.watch("billing"))
    assert [(each.name, each.values) for each in found.series] == [("orders", [5, None, 9])]


def test_no_more_than_ten_minutes_are_kept() -> None:
    cluster = Cluster()
    sampler = LagSampler(cluster.describe)
    sampler.watch("billing")
    for _ in range(KEPT + 10):
        sampler.take(["billing"])
    assert len(sampler.watch("billing")) == KEPT


def test_a_group_that_is_not_there_is_not_watched() -> None:
    cluster = Cluster()
    cluster.gone = {"nobody"}
    sampler = LagSampler(cluster.describe)
    with pytest.raises(NoSuchGroup):
        sampler.watch("nobody")
    sampler.watch("billing")
    cluster.gone = {"billing"}
    sampler.take(["billing"])
    with pytest.raises(NoSuchGroup):
        sampler.watch("billing")


def test_there_is_a_bound_on_groups_at_a_time() -> None:
    sampler = LagSampler(Cluster().describe)
    for index in range(WATCHED):
        sampler.watch(f"group-{index}")
    with pytest.raises(TooManyWatched, match=f"the lag of {WATCHED} groups is being sampled"):
        sampler.watch("one-more")
    assert sampler.watch("group-0")


def test_topics_beyond_the_first_few_are_added_up() -> None:
    lags = {f"t{index}": index for index in range(TOPICS + 3)}
    found = sample(1.0, group("many", **lags)).topics
    assert found is not None
    assert len(found) == TOPICS + 1
    assert found["others"] == 0 + 1 + 2
    assert sum(lag or 0 for lag in found.values()) == sum(lags.values())


def test_a_lag_that_is_not_known_is_not_zero() -> None:
    assert sample(1.0, group("new", orders=None)) == Sample(1000, {"orders": None})


def test_a_topic_has_no_lag_before_the_group_had_offsets_of_it() -> None:
    samples = [Sample(1000, {"orders": 1}), Sample(2000, {"orders": 1, "late": 4})]
    found = {each.name: each.values for each in history_of("billing", samples).series}
    assert found == {"orders": [1, 1], "late": [None, 4]}
