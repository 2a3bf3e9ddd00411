"""Parts of the gateway that are not there until something in them is asked for."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.testclient import TestClient

from headrace.http.app import create_app
from headrace.http.parts import PARTS, Install
from headrace.http.settings import GatewaySettings

NOWHERE = "127.0.0.1:1"
THREADS = 8


@pytest.fixture
def app() -> FastAPI:
    return create_app(GatewaySettings(bootstrap=NOWHERE))


def paths(app: FastAPI) -> list[str]:
    return [each.path for each in iter_route_contexts(app.router.routes) if each.path is not None]


@pytest.mark.parametrize("install", PARTS, ids=lambda install: install.__name__)
def test_a_part_has_no_path_that_would_not_have_it_installed(install: Install) -> None:
    alone = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    install(alone)

    assert {path.split("/")[1] for path in paths(alone)} == PARTS[install]


def test_a_request_has_only_those_parts_installed_that_may_answer_it(app: FastAPI) -> None:
    before = set(paths(app))

    assert TestClient(app).get("/healthz").status_code == 200

    added = set(paths(app)) - before
    assert "/healthz" in added
    assert not any(path.startswith(("/ui", "/topics", "/subjects")) for path in added)


def test_a_part_is_installed_once(app: FastAPI) -> None:
    client = TestClient(app)
    client.get("/healthz")
    after_one = paths(app)

    client.get("/healthz")
    client.get("/readyz")

    assert paths(app) == after_one


def test_what_no_part_has_is_refused_as_ever_and_installs_nothing(app: FastAPI) -> None:
    before = paths(app)

    answer = TestClient(app).get("/nowhere/at/all")

    assert (answer.status_code, answer.json()) == (404, {"error_code": 404, "message": "Not Found"})
    assert paths(app) == before


def test_the_description_is_whole_and_the_same_whatever_was_asked_for_before(app: FastAPI) -> None:
    TestClient(app).get("/ui/nowhere")  # the console comes last in the order of parts

    described = app.openapi()

    assert described == create_app(GatewaySettings(bootstrap=NOWHERE)).openapi()
    assert {"/healthz", "/api/v1/topics", "/v3/clusters", "/subjects"} <= described["paths"].keys()


def test_routes_are_found_whichever_part_was_there_first() -> None:
    described = create_app(GatewaySettings(bootstrap=NOWHERE)).openapi()["paths"]
    forwards, backwards = FastAPI(), FastAPI()
    for install in PARTS:
        install(forwards)
    for install in reversed([*PARTS]):
        install(backwards)

    for path, operations in described.items():
        for method in operations:
            assert endpoint(forwards, method, path) == endpoint(backwards, method, path) is not None, path


def endpoint(app: FastAPI, method: str, path: str) -> Any:
    """What would answer; the names in braces are names as good as any."""
    scope = {"type": "http", "method": method.upper(), "path": path, "raw_path": path.encode(), "headers": []}
    for route in iter_route_contexts(app.router.routes):
        match, _ = route.matches(scope)
        if match.name == "FULL":
            return route.endpoint
    return None


def test_what_routes_share_is_made_once_for_all_threads(app: FastAPI) -> None:
    together = Barrier(THREADS)

    def hub(_: int) -> Any:
        together.wait()
        return app.state.hub

    with ThreadPoolExecutor(THREADS) as pool:
        found = set(pool.map(hub, range(THREADS)))

    assert found == {app.state.hub}


def test_what_nobody_asked_for_is_not_made(app: FastAPI) -> None:
    with TestClient(app) as client:
        client.get("/healthz")

    assert not app.state.has("hub")
    assert not app.state.has("counters")


def test_there_is_no_telling_what_is_shared_by_any_other_name(app: FastAPI) -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = app.state.nonsense
