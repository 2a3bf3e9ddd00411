"""The app: every part of the gateway at its place, on one port."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from headrace import __version__
from headrace.http import problems
from headrace.http.access import AccessLog
from headrace.http.guard import Guard
from headrace.http.head import Head
from headrace.http.reach import Reach
from headrace.http.settings import GatewaySettings
from headrace.http.tracing import Tracing, provider

PARTS: Final = ("metrics", "admin", "gateway", "registry", "console")
"""Packages whose `routes` module has `install(app)`, which adds the part's routes."""


def create_app(settings: GatewaySettings) -> FastAPI:
    """The gateway of a cluster; `app.state.reach` is how its routes get there."""
    app = FastAPI(
        title="Headrace",
        version=__version__,
        lifespan=_life,
        docs_url=None,  # FastAPI's own pages load scripts from another host
        redoc_url=None,
    )
    app.state.reach = Reach(settings)
    app.add_middleware(Head)
    app.add_middleware(Guard, max_request_bytes=settings.max_request_bytes, hosts=settings.hosts)
    app.add_middleware(AccessLog)
    app.state.traces = provider()
    if app.state.traces is not None:
        app.add_middleware(Tracing, provider=app.state.traces)
    problems.install(app)
    app.add_api_route("/", _root, include_in_schema=False)
    for part in PARTS:
        import_module(f"headrace.http.{part}.routes").install(app)
    return app


@asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    try:
        yield
    finally:
        app.state.rates.close()
        app.state.counters.close()
        if app.state.traces is not None:
            app.state.traces.shutdown()
        app.state.reach.close()


async def _root(request: Request) -> Response:
    """People are led to the console; machines that ask whether this is a registry are told {}."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("ui/")
    return JSONResponse({})
