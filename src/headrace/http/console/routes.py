"""The pages for people, under /ui, and what only their scripts ask for; `first_page` has the first."""

from http import HTTPStatus

from fastapi import APIRouter, FastAPI
from fastapi.responses import Response

from headrace.http.console.pages import PageRoute
from headrace.http.console.views import (
    api,
    broker,
    group,
    groups,
    messages,
    pipelines,
    schemas,
    topic,
    topics,
)
from headrace.http.problems import Problem

elsewhere = APIRouter(route_class=PageRoute, include_in_schema=False)


@elsewhere.get("/ui/{rest:path}")
async def nowhere(rest: str) -> Response:
    """Every other address."""
    raise Problem(HTTPStatus.NOT_FOUND, 404, f"there is no page {rest} here")


def install(app: FastAPI) -> None:
    """Add this part to the gateway."""
    for part in (broker, topics, topic, messages, groups, group, schemas, pipelines, api):
        app.include_router(part.router)
    app.include_router(elsewhere)
