"""Our own JSON about a cluster and its topics and groups, under /api/v1."""

from fastapi import APIRouter, FastAPI

router = APIRouter()


def install(app: FastAPI) -> None:
    """Add this part to the gateway."""
    app.include_router(router)
