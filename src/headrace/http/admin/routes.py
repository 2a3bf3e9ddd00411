"""Our own JSON about a cluster and its topics and groups, under /api/v1."""

from fastapi import APIRouter, FastAPI

from headrace.http.admin import brokers, cluster, groups, messages, searching, tail, topics

router = APIRouter(prefix="/api/v1")
for part in (cluster, brokers, topics, searching, tail, messages, groups):
    router.include_router(part.router)


def install(app: FastAPI) -> None:
    """Add this part to the gateway."""
    app.include_router(router)
