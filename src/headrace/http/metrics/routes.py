"""/metrics, /healthz and /readyz, and the rates that the console draws."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.responses import PlainTextResponse

from headrace.http.metrics.counters import Counters
from headrace.http.metrics.derived import of_requests
from headrace.http.metrics.exposition import CONTENT_TYPE, exposition
from headrace.http.metrics.lags import Lags
from headrace.http.metrics.rates import EVERY_S, Rates
from headrace.http.problems import Problem, answers
from headrace.http.reach import SILENCE_S, Reached

router = APIRouter(tags=["health"], responses=answers(HTTPStatus.SERVICE_UNAVAILABLE))


@router.get("/healthz", summary="Is the gateway there?")
async def healthz() -> dict[str, str]:
    """That the gateway runs."""
    return {"status": "ok"}


@router.get("/readyz", summary="Does it reach the cluster?")
def readyz(reach: Reached) -> dict[str, str]:
    """That it reaches the cluster."""
    with reach.brokers(SILENCE_S) as brokers:
        brokers.metadata()
    return {"status": "ready"}


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    response_class=PlainTextResponse,
    responses=answers(HTTPStatus.NOT_FOUND),
)
def metrics(
    request: Request,
    broker: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only of this broker.")] = None,
) -> PlainTextResponse:
    """What Prometheus scrapes: every broker's counters, topics, and groups with their lag.

    One gateway tells of the whole cluster. Where each broker has a gateway and each is scraped, `?broker=ID`
    leaves out the others, and what is not a broker's own. A broker that does not answer within seconds is not
    waited for, and `headrace_broker_up` is 0 for it.
    """
    counters: Counters = request.app.state.counters
    lags: Lags = request.app.state.lags
    looking = lags.begin() if broker is None else None
    found = counters.metadata()
    counted = counters.count(found, only=broker)
    if broker is not None and broker not in counted:
        raise Problem(HTTPStatus.NOT_FOUND, 40404, f"there is no broker {broker} that answers")
    more = () if looking is None else lags.families(found, counted, looking)
    return PlainTextResponse(exposition(counted, [*of_requests(counted), *more]), media_type=CONTENT_TYPE)


@router.get("/api/v1/rates", tags=["cluster"], summary="Throughput of the last ten minutes")
def rates(
    request: Request,
    topic: Annotated[str | None, Query(description="Of this topic, besides those of the brokers.")] = None,
) -> dict[str, Any]:
    """Messages and bytes a second in the last ten minutes, from when somebody first asked for them."""
    sampled: Rates = request.app.state.rates
    return {"interval_s": EVERY_S, "points": [point.shown(topic) for point in sampled.points()]}


def install(app: FastAPI) -> None:
    """Add this part to the gateway."""
    app.include_router(router)
