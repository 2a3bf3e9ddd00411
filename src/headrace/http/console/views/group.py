"""One consumer group: its members, its offsets, and its lag over time."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response
from pydantic import BaseModel

from headrace.http.console.pages import PageRoute, page
from headrace.http.console.sampling import EVERY_S, LagSampler, Sample
from headrace.http.console.tables import table_of
from headrace.http.gateway.bodies import GROUP, GroupName
from headrace.http.problems import answers
from headrace.http.raw_names import RawRoute
from headrace.http.reach import ReachDep

router = APIRouter(route_class=RawRoute)
pages = APIRouter(route_class=PageRoute, include_in_schema=False)

_COLUMNS = {
    "place": lambda each: (each.topic, each.partition),
    "committed": lambda each: each.committed,
    "end": lambda each: each.log_end,
    "lag": lambda each: each.lag,
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
        table=table_of(request, found.partitions, _COLUMNS, text=lambda each: each.topic, sort="place"),
        most=max((each.lag or 0 for each in found.partitions), default=0),
        clients={each.member_id: each.client_id or each.member_id for each in found.members},
        topics=sorted({each.topic for each in found.partitions}),
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
    sampler: LagSampler = request.app.state.console.lags
    return history_of(name, sampler.watch(name))


def history_of(name: str, samples: list[Sample]) -> LagHistory:
    """Return samples as series; a topic has 0 before the group had offsets of it."""
    newest = next((each.topics for each in reversed(samples) if each.topics is not None), {})
    topics = dict.fromkeys([*newest, *(topic for each in samples for topic in each.topics or ())])
    return LagHistory(
        group=name,
        every_ms=int(EVERY_S * 1000),
        times=[each.at_ms for each in samples],
        series=[
            Series(
                name=topic,
                values=[None if each.topics is None else each.topics.get(topic, 0) for each in samples],
            )
            for topic in topics
        ],
    )


router.include_router(pages)
