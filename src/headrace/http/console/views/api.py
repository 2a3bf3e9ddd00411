"""The API page: all operations of the OpenAPI document."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.http.console.operations import curl, operations, phrase
from headrace.http.console.pages import PageRoute, page
from headrace.http.console.tables import LONGEST

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/ui/api")
def api(request: Request) -> Response:
    query = request.query_params.get("q", "").strip()[:LONGEST]
    every = operations(request.app.openapi())
    words = query.lower().split()
    shown = {
        tag: [
            each
            for each in found
            if all(word in f"{tag} {each.verb} {each.path} {each.summary}".lower() for word in words)
        ]
        for tag, found in every.items()
    }
    return page(
        request,
        "api.html",
        title="API",
        query=query,
        tags={tag: found for tag, found in shown.items() if found},
        total=sum(map(len, every.values())),
        base=f"{request.url.scheme}://{request.url.netloc}",
        curl=curl,
        phrase=phrase,
    )
