"""The gateway's FastAPI app: all routers, the middleware, and the objects that routes share."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Lock
from typing import Final

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response
from fastapi.routing import iter_route_contexts

from headrace import __version__
from headrace.gateway import problems
from headrace.gateway.admin import (
    acls,
    brokers,
    cluster,
    groups,
    messages,
    quotas,
    search,
    tail,
    topics,
    transactions,
    users,
)
from headrace.gateway.clients import ClientsFactory
from headrace.gateway.configuration import GatewaySettings
from headrace.gateway.console import routes as console
from headrace.gateway.current import root_of
from headrace.gateway.guard import Guard
from headrace.gateway.metrics import routes as metrics
from headrace.gateway.middleware import AccessLog, Head, Tracing, provider
from headrace.gateway.registry import rules, schemas, subjects
from headrace.gateway.rest import (
    v2_consumers,
    v2_produce,
    v2_topics,
    v3_configs,
    v3_groups,
    v3_records,
    v3_topics,
)
from headrace.gateway.users.authentication import Authentication, Users
from headrace.gateway.users.logins import Verifier
from headrace.gateway.users.pool import UserPool
from headrace.gateway.users.sessions import Sessions

_MESSAGES: Final = (search, tail, messages)
_ADMIN: Final = (cluster, brokers, topics, *_MESSAGES, groups, transactions, users, acls, quotas)
_GATEWAY: Final = (v2_topics, v2_produce, v2_consumers, v3_configs, v3_topics, v3_groups, v3_records)
_REGISTRY: Final = (subjects, schemas, rules)
_TAGS: Final = {
    "cluster": "The state of the cluster, elections, and reassignments of partitions.",
    "brokers": "Brokers, their log directories, and their settings.",
    "topics": "Topics, partitions, settings, and deletion of old records.",
    "messages": "Messages: search, live tail, and produce.",
    "groups": "Consumer groups, their lag, and resets of their offsets.",
    "transactions": "Transactions, and the producers of a partition.",
    "users": "Users who authenticate with a password, by SCRAM.",
    "ACLs": "Which principals may do what; needs an authorizer.",
    "quotas": "Quotas of users, client ids and IP addresses.",
    "REST proxy v2": "Topics and producing, as in Confluent's REST proxy.",
    "REST proxy v2: consumers": "Consumers that the gateway keeps from one request to the next.",
    "REST proxy v3": "The cluster as resources with links, and producing of records.",
}
_RESOLVING: Final = Lock()


def create_app(settings: GatewaySettings) -> FastAPI:
    app = FastAPI(
        title="Headrace",
        version=__version__,
        lifespan=_lifespan,
        openapi_tags=[{"name": name, "description": about_tag} for name, about_tag in _TAGS.items()],
        docs_url=None,  # FastAPI's own pages load scripts from another host
        redoc_url=None,
    )
    # None of the shared objects connects to a broker before it is used. `everyone` has the clients of all
    # requests if there is no authentication, `users` those of each user.
    factory = ClientsFactory(settings)
    app.state.factory = factory
    app.state.reach = factory.own
    app.state.traces = provider()
    app.state.users = app.state.everyone = None
    if settings.authentication:
        verifier = Verifier(settings, factory.own.brokers)
        sessions = Sessions(idle_s=settings.session_idle_s, absolute_s=settings.session_absolute_s)
        app.state.users = Users(UserPool(verifier.accept, factory.for_user), sessions, verifier)
    else:
        app.state.everyone = factory.for_everyone()
        app.state.hub = app.state.everyone.hub

    app.add_api_route("/", _root, include_in_schema=False)
    app.include_router(metrics.router)
    for module in _ADMIN:
        app.include_router(module.router, prefix="/api/v1")
    app.include_router(v3_topics.clusters_router)
    for module in (*_GATEWAY, *_REGISTRY, console):
        app.include_router(module.router)

    app.add_middleware(Head)
    if app.state.users is not None:
        app.add_middleware(Authentication, users=app.state.users)
    app.add_middleware(
        Guard,
        max_request_bytes=settings.max_request_bytes,
        max_bodies_bytes=settings.max_bodies_bytes,
        read_timeout_s=settings.read_timeout_s,
        hosts=settings.hosts,
    )
    app.add_middleware(AccessLog)
    if app.state.traces is not None:
        app.add_middleware(Tracing, provider=app.state.traces)
    problems.install(app)
    return app


def end_streams(app: FastAPI) -> None:
    """End tails and waiting reads of all users soon, because the gateway is about to stop."""
    if app.state.users is not None:
        app.state.users.pool.end_streams()
    else:
        app.state.everyone.end_streams()


def resolve_routes(app: FastAPI) -> None:
    """Resolve all routes now: FastAPI does it with the first request, and not for several threads at a time.

    All gateways of a process share the functions and routers that routes are made of.
    """
    with _RESOLVING:
        list(iter_route_contexts(app.router.routes))


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    try:
        yield
    finally:
        if app.state.traces is not None:
            app.state.traces.shutdown()
        if app.state.users is not None:
            await app.state.users.pool.close()
        app.state.factory.close()


async def _root(request: Request) -> Response:
    """Redirect browsers to the console; answer {} to registry clients that check the registry's URL."""
    if "text/html" in request.headers.get("accept", ""):
        root = root_of(request.scope)  # of a cluster; its address may have been asked for without a slash
        return RedirectResponse(f"{root}/ui/" if root else "ui/")
    return JSONResponse({})
