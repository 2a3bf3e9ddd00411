"""Who is waited for, and who is not. Without any patience, whoever makes us wait at all is too slow."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from headrace.http import problems
from headrace.http.patience import Patience

FIRST: Message = {"type": "http.request", "body": b"{", "more_body": True}
LAST: Message = {"type": "http.request", "body": b"}", "more_body": False}


async def echo(request: Request) -> Response:
    return PlainTextResponse(await request.body())


def asked(app: Any, receive: Callable[[], Awaitable[Message]]) -> list[Message]:
    """What a client is sent, whose next message `receive` has."""
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
    asyncio.run(asyncio.wait_for(Patience(app, patience_s=0)(scope, receive, send), 30))
    return sent


def echoing() -> FastAPI:
    app = FastAPI()
    problems.install(app)
    app.add_api_route("/", echo, methods=["POST"])
    return app


def test_half_a_body_is_refused() -> None:
    messages = iter([FIRST])

    async def receive() -> Message:
        for message in messages:
            return message
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    start, body = asked(echoing(), receive)
    assert start["status"] == 408
    assert (b"connection", b"close") in start["headers"]
    assert json.loads(body["body"]) == {"error_code": 408, "message": "the body has not gone on for 0 s"}


def test_a_body_that_keeps_coming_is_taken() -> None:
    messages = iter([FIRST, LAST])

    async def receive() -> Message:
        return next(messages)

    start, body = asked(echoing(), receive)
    assert (start["status"], body["body"]) == (200, b"{}")


def test_a_stream_that_is_being_answered_may_pause() -> None:
    messages = iter([FIRST, LAST])

    async def receive() -> Message:
        for _ in range(3):
            await asyncio.sleep(0)  # as long as it takes
        return next(messages)

    async def answering(_scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        body = (await receive())["body"] + (await receive())["body"]
        await send({"type": "http.response.body", "body": body})

    assert asked(answering, receive)[-1]["body"] == b"{}"


def test_somebody_who_waits_for_the_client_to_go_may_wait() -> None:
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

    assert asked(listening, receive) == [{"type": "http.disconnect"}]
