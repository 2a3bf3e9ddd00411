"""Responses to requests that a coordinator answers when its records are committed."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar

from headrace.broker.slices import Steps, in_slices
from headrace.broker.translate import FAILURES, Failure

T = TypeVar("T")


def respond(
    reply: "asyncio.Future[Any]", build: Callable[[Any], T], refuse: Callable[[Failure], T]
) -> T | Awaitable[T]:
    """Return the response that `build` makes of the reply, or `refuse` of its error; now, or later."""
    if not reply.done():
        return _respond_later(reply, build, refuse)
    try:
        answer = reply.result()
    except FAILURES as error:
        return refuse(error)
    return build(answer)


async def _respond_later(
    reply: "asyncio.Future[Any]", build: Callable[[Any], T], refuse: Callable[[Failure], T]
) -> T:
    try:
        answer = await reply
    except FAILURES as error:
        return refuse(error)
    return build(answer)


def respond_after(
    replies: "Collection[asyncio.Future[Any]]", build: Callable[[], Steps[T]]
) -> Steps[T | Awaitable[T]]:
    """Return the response that `build` makes in steps once all replies are done, whatever their outcome."""
    waiting = [reply for reply in replies if not reply.done()]
    if waiting:
        return _respond_after(waiting, build)
    return (yield from build())


async def _respond_after(waiting: "list[asyncio.Future[Any]]", build: Callable[[], Steps[T]]) -> T:
    await asyncio.wait(waiting)
    return await in_slices(build())
