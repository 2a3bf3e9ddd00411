"""Several clusters at one address: names, cookies, and the app that gets a request."""

from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI, Request
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from headrace.client.errors import BadSetting
from headrace.gateway.clusters import SeveralClusters, check_name
from headrace.gateway.current import CLUSTERS, root_of
from headrace.gateway.users import cookies


def app(name: str, log: list[str]) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> Any:
        log.append(f"{name} starts")
        yield
        log.append(f"{name} stops")

    made = FastAPI(lifespan=lifespan)

    @made.get("/{path:path}")
    async def answer(request: Request, path: str) -> dict[str, Any]:
        links = [list(each) for each in request.scope[CLUSTERS]]
        raw = request.scope["raw_path"].decode()
        return {"app": name, "path": path, "raw": raw, "root": root_of(request.scope), "links": links}

    return made


def test_a_request_goes_to_the_app_of_its_cluster_without_the_prefix() -> None:
    log: list[str] = []
    with TestClient(SeveralClusters({"prod": app("prod", log), "test": app("test", log)})) as client:
        assert log == ["prod starts", "test starts"]
        first = client.get("/ui/topics").json()
        assert (first["app"], first["path"], first["root"]) == ("prod", "ui/topics", "")
        assert first["links"] == [["prod", ""], ["test", "/c/test"]]
        other = client.get("/c/test/ui/a%2Fb").json()
        assert (other["app"], other["raw"], other["root"]) == ("test", "/ui/a%2Fb", "/c/test")
        assert client.get("/c/test").json() == {**other, "path": "", "raw": "/"}
        escaped = client.get("/c/%74est/ui").json()
        assert (escaped["app"], escaped["raw"]) == ("prod", "/c/%74est/ui")
        assert client.get("/c/nobody/x").json() == {**first, "path": "c/nobody/x", "raw": "/c/nobody/x"}
        away = client.get("/c/prod/ui/?q=1", follow_redirects=False)
        assert (away.status_code, away.headers["location"]) == (307, "/ui/?q=1")
    assert log[2:] == ["test stops", "prod stops"]


@pytest.mark.parametrize("path", ["//other.example/x", "///other.example/x", "/%2Fother.example/x"])
def test_a_redirect_stays_at_this_address(path: str) -> None:
    with TestClient(SeveralClusters({"prod": app("prod", [])})) as client:
        away = client.get(f"/c/prod{path}", follow_redirects=False)
    assert away.headers["location"] == "/other.example/x"


@pytest.mark.parametrize("name", ["", "ui", "API", "a b", "a/b", "-x", "ü", "x" * 41, "..", "%2e"])
def test_a_name_that_cannot_be_in_an_address_is_refused(name: str) -> None:
    with pytest.raises(BadSetting, match="cannot be the name of a cluster"):
        check_name(name)


def test_sessions_of_clusters_have_different_cookies() -> None:
    one = cookies.set_cookie("secret", secure=True, root="/c/test")
    assert one.startswith("__Host-headrace-session-test=secret; Path=/; HttpOnly")
    headers = Headers({"cookie": "__Host-headrace-session-test=secret"})
    assert cookies.session_id(headers, secure=True, root="/c/test") == "secret"
    assert cookies.session_id(headers, secure=True) is None
    assert cookies.session_id(headers, secure=True, root="/c/other") is None
