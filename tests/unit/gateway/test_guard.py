"""Who is turned away at the door."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from socket import gethostname
from threading import Event, Semaphore
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.gateway import problems
from headrace.gateway.guard import Guard

LIMIT = 100


async def echo(request: Request) -> Response:
    return PlainTextResponse(await request.body())


FIRST: Message = {"type": "http.request", "body": b"{", "more_body": True}
LAST: Message = {"type": "http.request", "body": b"}", "more_body": False}


def client(server: str = "127.0.0.1", hosts: tuple[str, ...] = ()) -> TestClient:
    app = Starlette(routes=[Route("/", echo, methods=["GET", "POST", "DELETE"])])
    guarded = Guard(app, max_request_bytes=LIMIT, max_bodies_bytes=3 * LIMIT, hosts=hosts)

    async def at(scope: Any, receive: Any, send: Any) -> None:
        await guarded({**scope, "server": (server, 8080)}, receive, send)

    return TestClient(at, base_url="http://127.0.0.1:8080")


@pytest.mark.parametrize(
    ("method", "host", "origin", "status"),
    [
        ("POST", "127.0.0.1:8080", None, 200),  # no browser
        ("POST", "anything.example", None, 403),  # on the loopback nobody is called that
        ("GET", "evil.example:8080", None, 403),  # all that a browser tells of a page that was rebound
        ("GET", f"{gethostname()}:8080", None, 200),
        ("GET", "", None, 200),  # HTTP/1.0, as some who look after its health
        ("POST", "127.0.0.1:8080", "http://[", 403),
        ("POST", "127.0.0.1:8080", "http://127.0.0.1:8080", 200),
        ("POST", "localhost:8080", "http://localhost:8080", 200),
        ("POST", "[::1]:8080", "http://[::1]:8080", 200),
        ("POST", "127.0.0.1:8080", "http://evil.example", 403),
        ("POST", "127.0.0.1:8080", "http://127.0.0.1:9999", 403),
        ("POST", "127.0.0.1:8080", "null", 403),
        ("DELETE", "evil.example:8080", "http://evil.example:8080", 403),  # its name leads to the loopback
        ("GET", "127.0.0.1:8080", "http://evil.example", 200),  # it cannot read the answer
    ],
)
def test_a_browser_must_come_from_a_page_of_our_own(
    method: str, host: str, origin: str | None, status: int
) -> None:
    headers = {"host": host} | ({"origin": origin} if origin else {})
    assert client().request(method, "/", headers=headers).status_code == status


@pytest.mark.parametrize(
    "host",
    [
        "[::1].evil.example",
        "[::1]evil.example",
        "[::1%25.evil.example]",
        "[::1%lo]",
        "[evil.example]",
        "[v1.evil]",
        "[::1",
        "[127.0.0.1]",
        "127.0.0.1:80@evil.example",
        "127.0.0.1@evil.example",
        "127.0.0.1:80.evil.example",
        "127.0.0.1/evil.example",
        "127.0.0.1,evil.example:80@",
        "localhost evil.example",
        "localhost:http",
        "local%zzhost",
        ":8080",
        "localhost\\evil",
    ],
)
@pytest.mark.parametrize("server", ["127.0.0.1", "192.0.2.7"])
def test_a_host_header_that_is_no_host_is_a_bad_request(host: str, server: str) -> None:
    for method in ("GET", "POST"):
        answer = client(server=server).request(method, "/", headers={"host": host})
        assert answer.status_code == 400, host
        assert "the Host header" in answer.json()["message"]


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1.evil.example", "evil.localhost", "localhost.evil.example", "localhost,evil.example", "127.1"],
)
def test_a_host_is_compared_as_a_whole(host: str) -> None:
    assert client().get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["LOCALHOST", "localhost:", "127.0.0.1", "[::1]", "[::FFFF:127.0.0.1]:80"])
def test_a_host_of_this_machine_passes_in_any_form_of_the_grammar(host: str) -> None:
    assert client().get("/", headers={"host": host}).status_code == 200


def test_two_host_headers_are_a_bad_request() -> None:
    answer = client().get("/", headers=[("host", "localhost"), ("host", "evil.example")])

    assert answer.status_code == 400
    assert "2 Host headers" in answer.json()["message"]


def test_a_page_whose_name_leads_to_the_loopback_may_not_even_read() -> None:
    headers = {"host": "evil.example"}

    assert client().get("/", headers=headers).status_code == 403
    assert client(hosts=("evil.example",)).get("/", headers=headers).status_code == 200  # a proxy of ours


def test_hosts_are_exact_on_every_address() -> None:
    named = {"host": "gateway.example:8443"}

    assert client(server="192.0.2.7").get("/", headers=named).status_code == 403
    assert client(server="192.0.2.7").get("/", headers={"host": "192.0.2.7:8443"}).status_code == 200
    listed = client(server="192.0.2.7", hosts=("gateway.example",))
    assert listed.get("/", headers=named).status_code == 200
    assert listed.get("/", headers={"host": "a.gateway.example"}).status_code == 403


def test_a_refusal_names_the_host_and_the_setting_that_would_allow_it() -> None:
    said = client().get("/", headers={"host": "kafka.example:8080"}).json()["message"]

    assert "'kafka.example'" in said
    assert "http.hosts" in said
    assert "--allowed-host" in said


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("kafka.example", "https://kafka.example", 200),
        ("Kafka.example", None, 200),
        ("127.0.0.1:8080", "https://kafka.example", 200),  # a proxy that puts its own name for it in
        ("127.0.0.1:8080", "https://evil.example", 403),
        ("kafka.example", "https://evil.example", 403),
    ],
)
def test_pages_of_an_allowed_host_may_change_things(host: str, origin: str | None, status: int) -> None:
    headers = {"host": host} | ({"origin": origin} if origin else {})

    assert client(hosts=("Kafka.Example",)).post("/", headers=headers).status_code == status


def test_a_body_has_an_end() -> None:
    def chunks() -> Any:
        for _ in range(30):
            yield b"0123456789"

    assert client().post("/", content=b"x" * LIMIT).status_code == 200
    assert client().post("/", content=b"x" * (LIMIT + 1)).status_code == 413
    assert client().post("/", content=chunks()).status_code == 413


def test_bodies_that_are_held_at_a_time_have_a_bound_together() -> None:
    held = 3
    inside, goes_on = Semaphore(0), Event()

    async def wait(request: Request) -> Response:
        await request.body()
        inside.release()
        while not goes_on.is_set():  # noqa: ASYNC110  a thread of the test sets it
            await asyncio.sleep(0.01)
        return PlainTextResponse("ok")

    app = Starlette(routes=[Route("/", wait, methods=["POST"])])
    guard = Guard(app, max_request_bytes=LIMIT, max_bodies_bytes=held * LIMIT)
    with TestClient(guard, base_url="http://127.0.0.1") as asking, ThreadPoolExecutor(held) as threads:
        answers = [threads.submit(asking.post, "/", content=b"x" * LIMIT) for _ in range(held)]
        for _ in range(held):
            assert inside.acquire(timeout=30)
        assert asking.post("/", content=b"x").status_code == 503
        goes_on.set()
        assert [each.result().status_code for each in answers] == [200] * held
        assert asking.post("/", content=b"x" * LIMIT).status_code == 200  # what is answered is not held


# -- slow bodies: without any timeout, a body that makes us wait at all is too slow ------------------


def sent_by(app: ASGIApp, receive: Callable[[], Awaitable[Message]]) -> list[Message]:
    """What a client gets whose next message is what `receive` returns."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "raw_path": b"/",
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": [],
        "server": ("127.0.0.1", 8080),
    }
    guard = Guard(app, max_request_bytes=LIMIT, max_bodies_bytes=LIMIT, read_timeout_s=0)
    asyncio.run(asyncio.wait_for(guard(scope, receive, send), 30))
    return sent


def echoing() -> FastAPI:
    app = FastAPI()
    problems.install(app)
    app.add_api_route("/", echo, methods=["POST"])
    return app


def test_a_body_that_pauses_is_refused() -> None:
    messages = iter([FIRST])

    async def receive() -> Message:
        for message in messages:
            return message
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    start, body = sent_by(echoing(), receive)
    assert start["status"] == 408
    assert (b"connection", b"close") in start["headers"]
    assert json.loads(body["body"]) == {"error_code": 408, "message": "the body has paused for 0 s"}


def test_a_body_that_keeps_coming_is_taken() -> None:
    messages = iter([FIRST, LAST])

    async def receive() -> Message:
        return next(messages)

    start, body = sent_by(echoing(), receive)
    assert (start["status"], body["body"]) == (200, b"{}")


def test_a_stream_that_is_being_answered_may_pause() -> None:
    messages = iter([FIRST, LAST])

    async def receive() -> Message:
        for _ in range(3):
            await asyncio.sleep(0)
        return next(messages)

    async def answering(_scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        body = (await receive())["body"] + (await receive())["body"]
        await send({"type": "http.response.body", "body": body})

    assert sent_by(answering, receive)[-1]["body"] == b"{}"


def test_waiting_for_a_disconnect_has_no_timeout() -> None:
    messages = iter([LAST])

    async def receive() -> Message:
        for message in messages:
            return message
        for _ in range(3):
            await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def listening(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": (await receive())["type"]})

    assert sent_by(listening, receive) == [{"type": "http.disconnect"}]
