"""Parts of the gateway that are not there until something in them is asked for."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.testclient import TestClient

from headrace.http.app import create_app
from headrace.http.parts import PARTS, Install, Parts
from headrace.http.settings import GatewaySettings

NOWHERE = "127.0.0.1:1"
THREADS = 8
IN_EVERY_PART = (
    "/healthz",
    "/api/v1/topics/t/no/such",
    "/topics/t/no/such",
    "/subjects/s/no/such",
    "/ui/nowhere",
)


@pytest.fixture
def app() -> FastAPI:
    return create_app(GatewaySettings(bootstrap=NOWHERE))


def paths(app: FastAPI) -> list[str]:
    return [
        each.path_format for each in iter_route_contexts(app.router.routes) if each.path_format is not None
    ]


@pytest.mark.parametrize("install", PARTS, ids=lambda install: install.__name__)
def test_a_part_has_no_path_that_would_not_have_it_installed(install: Install) -> None:
    alone = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    install(alone)

    assert paths(alone)
    assert not [path for path in paths(alone) if not PARTS[install].match(path)]
    assert not [path for path in paths(alone) if not PARTS[install].match(path.rstrip("/") + "/")]


def test_a_request_has_only_those_parts_installed_that_may_answer_it(app: FastAPI) -> None:
    before = set(paths(app))

    assert TestClient(app).get("/healthz").status_code == 200

    added = set(paths(app)) - before
    assert "/healthz" in added
    assert not any(path.startswith(("/ui", "/topics", "/subjects")) for path in added)


def test_what_routes_need_is_made_when_they_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """FastAPI would make it at the first request, of functions that another app's first may be at as well."""
    app = FastAPI()
    parts = Parts(app)
    for path in IN_EVERY_PART:
        parts.complete(path)
    monkeypatch.setattr("fastapi.routing.get_dependant", None)

    assert {"/healthz", "/subjects", "/topics"} <= set(paths(app))


def test_a_part_is_installed_once(app: FastAPI) -> None:
    client = TestClient(app)
    client.get("/healthz")
    after_one = paths(app)

    client.get("/healthz")
    client.get("/readyz")

    assert paths(app) == after_one


def test_a_part_is_installed_once_by_several_threads(app: FastAPI) -> None:
    clients = [TestClient(app) for _ in range(THREADS)]
    together = Barrier(THREADS)

    def ask(client: TestClient) -> int:
        together.wait()
        return client.get("/healthz").status_code

    with ThreadPoolExecutor(THREADS) as pool:
        assert set(pool.map(ask, clients)) == {200}

    assert paths(app).count("/healthz") == 1


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


def test_routes_have_one_order_whichever_part_was_asked_for_first(app: FastAPI) -> None:
    other = create_app(GatewaySettings(bootstrap=NOWHERE))

    for path in IN_EVERY_PART:
        assert TestClient(app).get(path).status_code in (200, 404), path
    for path in reversed(IN_EVERY_PART):
        assert TestClient(other).get(path).status_code in (200, 404), path

    assert paths(app) == paths(other)
    assert set(app.openapi()["paths"]) <= set(paths(app))


def test_the_first_page_is_found_behind_the_others(app: FastAPI) -> None:
    client = TestClient(app, follow_redirects=False)
    assert "there is no page nowhere here" in client.get("/ui/nowhere").text

    assert client.get("/ui").headers["location"] == "/ui/"
    assert client.get("/ui/static/any/base.css").status_code == 200


@pytest.mark.parametrize("path", ["/ui/static", "/ui/static/", "/ui/static/one", "/ui/static/a/b/c"])
def test_what_the_console_does_not_have_is_refused_by_a_page(app: FastAPI, path: str) -> None:
    answer = TestClient(app).get(path)

    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")


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
