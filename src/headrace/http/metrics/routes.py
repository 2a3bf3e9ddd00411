"""/healthz, /readyz and /metrics."""

from http import HTTPStatus

from fastapi import APIRouter, FastAPI

from headrace.http.problems import answers
from headrace.http.reach import Reached

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """That the gateway runs."""
    return {"status": "ok"}


@router.get("/readyz", responses=answers(HTTPStatus.SERVICE_UNAVAILABLE))
def readyz(reach: Reached) -> dict[str, str]:
    """That it reaches the cluster."""
    with reach.brokers() as brokers:
        brokers.metadata()
    return {"status": "ready"}


def install(app: FastAPI) -> None:
    """Add this part to the gateway."""
    app.include_router(router)
