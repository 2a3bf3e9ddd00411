"""Spans of requests: what they are called, whose trace they belong to, and that nobody has to have any."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from headrace.gateway.middleware import VARIABLES, Tracing, provider

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def client(spans: InMemorySpanExporter) -> TestClient:
    app = FastAPI()
    traces = TracerProvider()
    traces.add_span_processor(SimpleSpanProcessor(spans))
    app.add_middleware(Tracing, provider=traces)

    @app.get("/topics/{name}")
    def topic(name: str) -> str:
        if name == "broken":
            raise RuntimeError(name)
        return name

    return TestClient(app, raise_server_exceptions=False)


def test_a_span_is_named_for_the_route_and_not_for_the_path(
    client: TestClient, spans: InMemorySpanExporter
) -> None:
    client.get("/topics/orders")
    (span,) = spans.get_finished_spans()

    assert span.name == "GET /topics/{name}"
    assert span.kind is SpanKind.SERVER
    assert dict(span.attributes or {}) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.route": "/topics/{name}",
        "url.path": "/topics/orders",
    }


def test_it_is_part_of_the_callers_trace(client: TestClient, spans: InMemorySpanExporter) -> None:
    client.get("/topics/orders", headers={"traceparent": PARENT})
    (span,) = spans.get_finished_spans()

    assert span.parent is not None
    assert f"{span.parent.trace_id:032x}-{span.parent.span_id:016x}" == PARENT[3:-3]


def test_a_failure_of_ours_is_one_of_the_span(client: TestClient, spans: InMemorySpanExporter) -> None:
    assert client.get("/topics/broken").status_code == 500
    (span,) = spans.get_finished_spans()

    assert span.status.status_code is StatusCode.ERROR


def test_nothing_is_traced_unless_somebody_says_where_to(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert provider() is None

    monkeypatch.setenv(VARIABLES[0], "http://127.0.0.1:1")
    made = provider()
    assert made is not None
    made.shutdown()
