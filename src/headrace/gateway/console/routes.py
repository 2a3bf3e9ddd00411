"""All pages of the console under /ui, and the JSON that only its scripts need."""

from fastapi import APIRouter
from fastapi.responses import Response

from headrace.gateway.console import assets
from headrace.gateway.console.pages import PageRoute
from headrace.gateway.console.views import (
    acls,
    cluster,
    groups,
    login,
    messages,
    pipelines,
    quotas,
    schemas,
    topics,
    transactions,
)
from headrace.gateway.problems import Problem

router = APIRouter()
_OF_CLUSTER = (cluster, topics, messages, groups, transactions, schemas, pipelines)
for _view in (assets, login, *_OF_CLUSTER, acls, quotas):
    router.include_router(_view.router)

_not_found = APIRouter(route_class=PageRoute, include_in_schema=False)


@_not_found.get("/ui/{path:path}")
async def not_found(path: str) -> Response:
    raise Problem(404, f"there is no page {path} here")


router.include_router(_not_found)
