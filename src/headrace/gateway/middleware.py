"""ASGI middleware of the gateway: the access log, HEAD like GET without a body, and OpenTelemetry traces.

Requests that change something, and requests that fail with 5xx, are in the access log. Requests are traced if
the extra is installed and an endpoint is configured:

    pip install 'headrace[otel]'
    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 headrace up --data DIR

OpenTelemetry's own environment variables configure the rest: OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER etc.
"""

import logging
import os
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.gateway.current import USER, root_of
from headrace.gateway.guard import SAFE_METHODS

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_UNQUOTED: Final = "/:@!$&'()*+,;="
EXCLUDED: Final = "/consumers/"  # a GET there consumes records, which HEAD would lose
VARIABLES: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

access_logger = logging.getLogger("headrace.http.access")
logger = logging.getLogger(__name__)


class AccessLog:
    """ASGI middleware that logs one line for each request, with its parts as fields for JSON logs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s, status = time.perf_counter(), 500

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note_status)
        finally:
            if scope["method"] not in SAFE_METHODS or status >= 500:
                client, path = scope.get("client"), root_of(scope) + scope["path"]
                fields = {
                    "method": scope["method"],
                    "path": path,
                    "status": status,
                    "took_ms": round((time.perf_counter() - started_s) * 1000, 1),
                    "client": client[0] if client else None,
                }
                if scope.get(USER) is not None:
                    fields["user"] = scope[USER]
                # A path with a line break in it must not start a line of its own.
                shown = fields | {"path": quote(path, safe=_UNQUOTED, errors="backslashreplace")}
                line = "%(method)s %(path)s %(status)d in %(took_ms).1f ms"
                access_logger.info(line, shown, extra={"fields": fields})


class Head:
    """Turns HEAD into GET, since routes only have GET, and ends a streaming response at its first chunk."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or scope["path"].startswith(EXCLUDED):
            await self._app(scope, receive, send)
            return
        ended = False

        async def send_without_body(message: Message) -> None:
            nonlocal ended
            if message["type"] == "http.response.start":
                await send(message)
                return
            if not ended:
                ended = True
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            if message.get("more_body"):
                raise _EndOfResponse

        try:
            await self._app({**scope, "method": "GET"}, receive, send_without_body)
        except (_EndOfResponse, ClientDisconnect):
            if not ended:  # the client has disconnected
                raise


class _EndOfResponse(OSError):
    """Ends a streaming response, as the OSError of a closed connection would."""


def provider() -> "TracerProvider | None":
    """Return a provider that exports spans to the configured endpoint; None if there is none."""
    if not any(os.environ.get(name) for name in VARIABLES):
        return None
    if find_spec("opentelemetry.sdk") is None or find_spec("opentelemetry.exporter") is None:
        logger.warning("no traces, though %s is set: pip install 'headrace[otel]'", VARIABLES[0])
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    name = os.environ.get("OTEL_SERVICE_NAME", "headrace-gateway")
    made = TracerProvider(resource=Resource.create({"service.name": name}))
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return made


class Tracing:
    """ASGI middleware that makes a span for each request, in the trace of the caller's `traceparent`."""

    def __init__(self, app: ASGIApp, provider: "TracerProvider") -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415  an extra

        self._app = app
        self._tracer = provider.get_tracer("headrace.http")
        self._propagator = TraceContextTextMapPropagator()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        from opentelemetry.trace import SpanKind, StatusCode  # noqa: PLC0415

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with self._tracer.start_as_current_span(
            scope["method"],
            context=self._propagator.extract(headers),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": scope["method"], "url.path": scope["path"]},
        ) as span:

            async def send_and_record(message: Message) -> None:
                if message["type"] == "http.response.start":
                    route = getattr(scope.get("route"), "path", None)
                    if route is not None:  # the router has put it there by now
                        span.update_name(f"{scope['method']} {route}")
                        span.set_attribute("http.route", route)
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(StatusCode.ERROR)
                await send(message)

            await self._app(scope, receive, send_and_record)
