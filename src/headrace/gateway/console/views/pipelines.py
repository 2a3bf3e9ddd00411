"""Pipelines: their state, and throughput, lag and errors of their queries."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response
from pydantic import BaseModel

from headrace.gateway.console.pages import PageRoute, page
from headrace.gateway.current import clients_of
from headrace.gateway.problems import Problem, answers
from headrace.pipeline.graph import GraphNode, reported, with_figures
from headrace.pipeline.progress import Figures, Progress
from headrace.pipeline.status import state_of

router = APIRouter()
pages = APIRouter(route_class=PageRoute, include_in_schema=False)

POINTS: Final = 300  # batches of a query in a chart
DRAWN: Final = 12  # queries of a pipeline with charts
_LONGEST: Final = 500

PipelineName = Annotated[str, Path(description="The pipeline.", min_length=1, max_length=_LONGEST)]


class Query(BaseModel):
    """A query of a pipeline after its last batch; rates are zero while no rows arrive.

    Figures of batches are null before the first one, and rates are null while the query is silent.
    """

    name: str
    group: str  # the full name, which is also that of its consumer group
    state: str
    at_ms: int
    batch: int | None
    rows_per_s: float | None
    written_per_s: float | None
    rows: int
    written: int
    lag: int | None
    lags: dict[str, int]
    took_ms: int | None
    state_rows: int
    state_bytes: int
    watermark: str
    error: str
    shared: str  # the query that it shares with other sinks, or ""
    broken: dict[str, int]  # rows that broke an expectation since the start, by "STEP: EXPECTATION"
    restarts: int
    reason: str  # of the last restart


class Pipeline(BaseModel):
    """A pipeline: running, failed, ended, or silent if it has reported nothing for a minute."""

    name: str
    state: str
    queries: list[Query]


class Chart(BaseModel):
    """Series over the same times; null where nothing is known."""

    times: list[int]
    series: list[dict[str, str | list[float | None]]]


class History(BaseModel):
    pipeline: str
    charts: dict[str, Chart]


@pages.get("/ui/pipelines")
def pipelines(request: Request) -> Response:
    return page(request, "pipelines.html", title="Pipelines", pipelines=_pipelines(request))


@pages.get("/ui/pipelines/{name:path}")
def pipeline(request: Request, name: PipelineName) -> Response:
    now_ms = _now_ms()
    queries = clients_of(request).pipelines.totals(now_ms).get(name)
    if queries is None:
        raise _unknown(name)
    found = _pipeline(name, queries, now_ms)
    steps = _steps(name, queries, now_ms)
    return page(request, "pipeline.html", title=name, pipeline=found, drawn=DRAWN, steps=steps)


_REFUSALS = answers(503)


@router.get("/api/v1/pipelines", tags=["pipelines"], responses=_REFUSALS)
def every_pipeline(request: Request) -> list[Pipeline]:
    """Return the pipelines that have reported to the topic `_headrace_pipelines` in the last days."""
    return _pipelines(request)


@router.get("/api/v1/pipelines/{name:path}/history", tags=["pipelines"], responses=answers(404, 503))
def history(name: PipelineName, request: Request) -> History:
    """Return rows per second in and out, and lag, of each query, batch by batch."""
    by_query: dict[str, list[Progress]] = {}
    for each in clients_of(request).pipelines.progress():
        if each.pipeline == name:
            by_query.setdefault(each.query, []).append(each)
    if not by_query:
        raise _unknown(name)
    charts: dict[str, Chart] = {}
    for query, progress in by_query.items():
        recent = progress[-POINTS:]
        charts[f"rates {query}"] = _chart(recent, {"in": "rows_per_s", "out": "written_per_s"})
        charts[f"lag {query}"] = _chart(recent, {"behind": "lag"})
    return History(pipeline=name, charts=charts)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _pipelines(request: Request) -> list[Pipeline]:
    now_ms = _now_ms()
    known = clients_of(request).pipelines.totals(now_ms)
    return [_pipeline(name, queries, now_ms) for name, queries in known.items()]


def _unknown(name: str) -> Problem:
    return Problem(40404, f"there is no pipeline {name}")


def _steps(name: str, queries: Sequence[Figures], now_ms: int) -> Sequence[GraphNode]:
    """Return the steps of a pipeline, as its last run has reported them; none if it has not."""
    graph = reported(name, queries)
    if graph is None:
        return ()
    silent = {figures.query for figures in queries if state_of([figures], now_ms) == "silent"}
    return with_figures(graph, queries, silent).nodes


def _pipeline(name: str, queries: Sequence[Figures], now_ms: int) -> Pipeline:
    return Pipeline(
        name=name,
        state=state_of(queries, now_ms),
        queries=[_query(name, query, state_of([query], now_ms)) for query in queries],
    )


def _query(pipeline: str, figures: Figures, state: str) -> Query:
    last = figures.last or Progress(pipeline=pipeline, query=figures.query, event="", at_ms=0)
    moving = figures.is_moving and state == "running"
    known = figures.last is not None
    rates_known = known and state != "silent"
    return Query(
        name=figures.query.removeprefix(f"{pipeline}."),
        group=figures.query,
        state=figures.event
        if state == "running" and figures.event in {"idle", "stalled", "restarting"}
        else state,
        at_ms=figures.at_ms,
        batch=last.batch if known else None,
        rows_per_s=(last.rows_per_s if moving else 0) if rates_known else None,
        written_per_s=(last.written_per_s if moving else 0) if rates_known else None,
        rows=figures.rows,
        written=figures.written,
        lag=last.lag if known else None,
        lags=dict(last.lags),
        took_ms=last.took_ms if known else None,
        state_rows=last.state_rows,
        state_bytes=last.state_bytes,
        watermark="" if last.watermark.startswith("1970-") else last.watermark,
        error=figures.error,
        shared=last.shared,
        broken=dict(figures.broken),
        restarts=figures.restarts,
        reason=figures.reason,
    )


def _chart(points: Sequence[Progress], names: Mapping[str, str]) -> Chart:
    """Return a chart with a gap at each start and end; a batch without rows has the rate 0."""
    return Chart(
        times=[point.at_ms for point in points],
        series=[
            {
                "name": name,
                "values": [
                    float(getattr(point, field)) if point.event in {"batch", "idle"} else None
                    for point in points
                ],
            }
            for name, field in names.items()
        ],
    )


router.include_router(pages)
