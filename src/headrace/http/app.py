"""The app: every part of the gateway at its place, on one port."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from headrace import __version__
from headrace.http import problems
from headrace.http.access import AccessLog
from headrace.http.guard import Guard
from headrace.http.head import Head
from headrace.http.parts import Completed, Parts, install_all
from headrace.http.settings import GatewaySettings
from headrace.http.shared import Shared
from headrace.http.tracing import Tracing


class Gateway(FastAPI):
    """An app that describes all of its parts, whichever of them are there yet."""

    def openapi(self) -> dict[str, Any]:
        """The same at any time: it is made of another app, which has them all in their order."""
        if self.openapi_schema is None:
            whole = FastAPI(title=self.title, version=self.version)
            install_all(whole)
            self.openapi_schema = whole.openapi()
        return self.openapi_schema


def create_app(settings: GatewaySettings) -> FastAPI:
    """The gateway of a cluster; `app.state.reach` is how its routes get there."""
    app = Gateway(
        title="Headrace",
        version=__version__,
        lifespan=_life,
        docs_url=None,  # FastAPI's own pages load scripts from another host
        redoc_url=None,
    )
    app.state = Shared(app, settings)
    app.add_api_route("/", _root, include_in_schema=False)
    app.add_middleware(Completed, parts=Parts(app))
    app.add_middleware(Head)
    app.add_middleware(
        Guard,
        max_request_bytes=settings.max_request_bytes,
        max_bodies_bytes=settings.max_bodies_bytes,
        hosts=settings.hosts,
    )
    app.add_middleware(AccessLog)
    if app.state.traces is not None:
        app.add_middleware(Tracing, provider=app.state.traces)
    problems.install(app)
    return app


@asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    try:
        yield
    finally:
        if app.state.traces is not None:
            app.state.traces.shutdown()
        app.state.reach.close()


async def _root(request: Request) -> Response:
    """People are led to the console; machines that ask whether this is a registry are told {}."""
    if "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("ui/")
    return JSONResponse({})
