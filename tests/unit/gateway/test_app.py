"""The whole app: every part has its routes, and whatever else is requested is refused in the one form."""

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from headrace.gateway.app import create_app, resolve_routes
from headrace.gateway.configuration import GatewaySettings


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return create_app(GatewaySettings(bootstrap="127.0.0.1:1"))


def test_every_part_is_in_the_openapi_document(app: FastAPI) -> None:
    paths = app.openapi()["paths"].keys()
    assert {
        "/healthz",
        "/api/v1/topics",
        "/topics",
        "/v3/clusters",
        "/subjects",
        "/api/v1/pipelines",
    } <= paths


def test_an_unknown_path_is_refused_as_json(app: FastAPI) -> None:
    answer = TestClient(app, base_url="http://localhost").get("/nowhere/at/all")
    assert (answer.status_code, answer.json()) == (404, {"error_code": 404, "message": "Not Found"})


def test_the_console_is_found_before_its_page_for_unknown_paths(app: FastAPI) -> None:
    client = TestClient(app, base_url="http://localhost", follow_redirects=False)
    assert client.get("/ui").headers["location"] == "/ui/"
    assert client.get("/ui/static/any/base.css").status_code == 200


@pytest.mark.parametrize("path", ["/ui/static/", "/ui/static/one", "/ui/static/a/b/c"])
def test_an_unknown_asset_is_refused_without_a_page_which_would_need_a_user(app: FastAPI, path: str) -> None:
    answer = TestClient(app, base_url="http://localhost").get(path)
    assert (answer.status_code, answer.json()["error_code"]) == (404, 404)


@pytest.mark.parametrize("path", ["/ui/nowhere", "/ui/static"])
def test_an_unknown_path_of_the_console_is_refused_by_a_page(app: FastAPI, path: str) -> None:
    answer = TestClient(app, base_url="http://localhost").get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")


def test_routes_can_be_resolved_before_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    made = create_app(GatewaySettings(bootstrap="127.0.0.1:1"))
    resolve_routes(made)
    monkeypatch.setattr("fastapi.routing.get_dependant", None)
    assert TestClient(made, base_url="http://localhost").get("/healthz").status_code == 200
