"""The pages for people, under /ui, and what only their scripts ask for."""

from fastapi import FastAPI

from headrace.http.console import assets
from headrace.http.console.state import Console
from headrace.http.console.views import (
    api,
    broker,
    cluster,
    group,
    groups,
    messages,
    pipelines,
    schemas,
    topic,
    topics,
)


def install(app: FastAPI) -> None:
    """Add this part to the gateway."""
    app.state.console = Console(app.state.reach)
    for part in (assets, cluster, broker, topics, topic, messages, groups, group, schemas, pipelines, api):
        app.include_router(part.router)
