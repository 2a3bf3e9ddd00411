"""The log of requests: which are in it, and that nobody else writes it."""

import logging

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from headrace.gateway.middleware import AccessLog


async def answer(request: Request) -> Response:
    return PlainTextResponse("", 500 if "failing" in request.url.path else 200)


@pytest.fixture
def client(caplog: pytest.LogCaptureFixture) -> TestClient:
    caplog.set_level(logging.INFO, "headrace.http.access")
    return TestClient(AccessLog(Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])))


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    said = (each.getMessage() for each in caplog.records if each.name == "headrace.http.access")
    return [message.rpartition(" in ")[0] for message in said]


def test_what_changes_something_is_in_it_and_what_fails(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    client.get("/topics")
    client.get("/failing")
    client.post("/subjects/x-value:1/versions")
    assert lines(caplog) == ["GET /failing 500", "POST /subjects/x-value:1/versions 200"]


def test_a_path_cannot_write_a_line_of_its_own(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    client.post("/x%0a2026-11-15%20ERROR%20the%20disk%20burns%1b[2J%e2%80%a8")
    assert lines(caplog) == ["POST /x%0A2026-11-15%20ERROR%20the%20disk%20burns%1B%5B2J%E2%80%A8 404"]
    (record,) = (each for each in caplog.records if each.name == "headrace.http.access")
    path = "/x\n2026-11-15 ERROR the disk burns\x1b[2J\u2028"
    assert vars(record)["fields"]["path"] == path, "as it is, for logs in JSON"
