"""Our own JSON about a cluster and its topics and groups, under /api/v1."""

from typing import Final

from fastapi import FastAPI

from headrace.http.admin import brokers, cluster, groups, messages, searching, tail, topics

_TAGS: Final = (
    {"name": "cluster", "description": "Its state, elections, and moves of partitions."},
    {"name": "brokers", "description": "Brokers, what is on their disks, and their settings."},
    {"name": "topics", "description": "Topics, partitions, settings, and deleting old records."},
    {"name": "messages", "description": "Messages: searched, followed live, and written."},
    {"name": "groups", "description": "Consumer groups, their lag, and moving them."},
)


def install(app: FastAPI) -> None:
    """Add this part to the gateway."""
    for part in (cluster, brokers, topics, searching, tail, messages, groups):
        app.include_router(part.router, prefix="/api/v1")
    app.openapi_tags = [*(app.openapi_tags or []), *_TAGS]
