"""OpenTelemetry traces of requests, if the extra is installed and an endpoint is configured.

    pip install 'headrace[otel]'
    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 headrace up --data DIR

OpenTelemetry's own environment variables configure the rest: OTEL_SERVICE_NAME, OTEL_TRACES_SAMPLER etc.
"""

import logging
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

VARIABLES: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

logger = logging.getLogger(__name__)


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
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415  an extra
            TraceContextTextMapPropagator,
        )

        self._app = app
        self._tracer = provider.get_tracer("headrace.http")
        self._propagator = TraceContextTextMapPropagator()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        from opentelemetry.trace import SpanKind  # noqa: PLC0415

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with self._tracer.start_as_current_span(
            scope["method"],
            context=self._propagator.extract(headers),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": scope["method"], "url.path": scope["path"]},
        ) as span:
            await self._app(scope, receive, _recording(span, scope, send))


def _recording(span: "Span", scope: Scope, send: Send) -> Send:
    """Return `send` that also records the route and the status in the span."""
    from opentelemetry.trace import StatusCode  # noqa: PLC0415

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

    return send_and_record
