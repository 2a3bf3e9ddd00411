"""Responses to requests that a coordinator answers when its records are committed."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from headrace.broker.results import Result
from headrace.broker.slices import Steps, in_slices
from headrace.broker.translate import FAILURES, Failure
from headrace.protocol.message import Message


def respond(
    reply: "asyncio.Future[Any]", build: Callable[[Any], Message], refuse: Callable[[Failure], Message]
) -> Result:
    """Return the response that `build` makes of the reply, or `refuse` of its error; now, or later."""
    if not reply.done():
        return Result(later=_respond_later(reply, build, refuse))
    try:
        answer = reply.result()
    except FAILURES as error:
        return Result(refuse(error))
    return Result(build(answer))


async def _respond_later(
    reply: "asyncio.Future[Any]", build: Callable[[Any], Message], refuse: Callable[[Failure], Message]
) -> Message:
    try:
        answer = await reply
    except FAILURES as error:
        return refuse(error)
    return build(answer)


def respond_after(
    replies: "Collection[asyncio.Future[Any]]", build: Callable[[], Steps[Message]]
) -> Steps[Result]:
    """Return the response that `build` makes in steps once all replies are done, whatever their outcome."""
    waiting = [reply for reply in replies if not reply.done()]
    if waiting:
        return Result(later=_respond_after(waiting, build))
    return Result((yield from build()))


async def _respond_after(
    waiting: "list[asyncio.Future[Any]]", build: Callable[[], Steps[Message]]
) -> Message:
    await asyncio.wait(waiting)
    return await in_slices(build())
