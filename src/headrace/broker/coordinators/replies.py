"""Responses to requests that a coordinator answers when its records are committed."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from headrace.broker.coordinators.shard import outcome
from headrace.broker.results import Result
from headrace.broker.slices import Steps, in_slices
from headrace.broker.translate import FAILURES, Failure
from headrace.protocol.message import Message


def respond(
    reply: "asyncio.Future[Any]", build: Callable[[Any], Message], refuse: Callable[[Failure], Message]
) -> Result:
    """Return the response that `build` makes of the reply, or `refuse` of its error; now, or later."""

    async def respond_later() -> Message:
        try:
            answer = await reply
        except FAILURES as error:
            return refuse(error)
        return build(answer)

    if not reply.done():
        return Result(later=respond_later())
    error = outcome(reply)
    return Result(build(reply.result()) if error is None else refuse(error))


def respond_after(
    replies: "Collection[asyncio.Future[Any]]", build: Callable[[], Steps[Message]]
) -> Steps[Result]:
    """Return the response that `build` makes in steps once all replies are done, whatever their outcome."""
    waiting = [reply for reply in replies if not reply.done()]

    async def respond_later() -> Message:
        await asyncio.wait(waiting)
        return await in_slices(build())

    return Result(later=respond_later()) if waiting else Result((yield from build()))
