"""A request that a fault intercepts before its handler, and what the fault does with it."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from headrace.broker.requests.dispatch import Context, Handler, HangUp, can_answer
from headrace.broker.requests.envelopes import forward
from headrace.broker.results import Encoded, Result
from headrace.protocol.api import response_class
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.index import ApiKey
from headrace.testing.refusals import merged, refusal, replaced, topics_of, with_topics

EARLY_S = 0.002  # loops count in milliseconds, and may end a sleep early
_NO_SESSION = -1


class Intercepted(NamedTuple):
    """A request, its context, and the handler that would serve it."""

    request: Any
    context: Context
    handler: Handler

    @property
    def key(self) -> int:
        return self.handler.key

    @property
    def version(self) -> int:
        return self.context.version

    def topics(self) -> list[str]:
        """Return the topics that the request names."""
        return list(topics_of(self.request, self.topic_name))

    def topic_name(self, topic_id: bytes) -> str | None:
        return self.context.broker.image.topic_names.get(topic_id)

    def served(self, request: Any = None) -> Result:
        """Return the broker's result of this request, or of `request` instead."""
        request = self.request if request is None else request
        if self.handler.on_controller and not can_answer(self.handler, self.context.broker):
            return Result(later=forward(request, self.context))
        return self.handler.function(request, self.context)

    async def response(self, request: Any = None) -> Any:
        """Wait for the broker's reply, and return it decoded."""
        reply = await self.served(request).response()
        if isinstance(reply, Encoded):
            return response_class(self.key).decode(b"".join(reply.body), self.version)
        return reply

    @property
    def leaves_topics_out(self) -> bool:
        """Whether it continues a fetch session, and names only the partitions that have changed."""
        return self.key == ApiKey.FETCH and self.request.session_epoch > 0


Happened = Callable[[], None]
"""Records that the fault has happened, for those who wait for it."""

Act = Callable[[Intercepted, str | None, Happened], Result]
"""Returns what a handler returns; the second argument is the fault's topic, if any."""

Kill = Callable[[int], None]
"""Begins to kill a broker."""


def delay(seconds: float) -> Act:
    """Serve the request at once, and reply later: so the requests of a connection keep their order."""

    def act(request: Intercepted, _topic: str | None, happened: Happened) -> Result:
        happened()
        result = request.served()

        async def reply() -> Any:
            response = await result.response()
            await asyncio.sleep(seconds + EARLY_S)
            return response

        return Result(later=reply())

    return act


def hang_up_before(_request: Intercepted, _topic: str | None, happened: Happened) -> Result:
    """Close the connection, and do not serve the request."""
    happened()
    raise HangUp("a fault of the test, before the request was served")


def hang_up_after(request: Intercepted, _topic: str | None, happened: Happened) -> Result:
    """Serve the request, and close the connection instead of a reply."""
    result = request.served()

    async def hang_up() -> Any:
        await result.response()
        happened()
        raise HangUp("a fault of the test, after the request was served")

    return Result(later=hang_up())


def kill(kill_broker: Kill, *, after: bool) -> Act:
    """Kill the broker, before it serves the request or `after` that, in any case before it replies."""

    def act(request: Intercepted, _topic: str | None, happened: Happened) -> Result:
        result = request.served() if after else None

        async def die() -> Any:
            if result is not None:
                await result.response()
            kill_broker(request.context.broker.broker_id)
            happened()
            await asyncio.get_running_loop().create_future()  # until the end of the broker cancels this

        return Result(later=die())

    return act


def fail(code: ErrorCode) -> Act:
    """Reply with an error, and do not serve the request; other topics than the fault's are served."""

    def act(request: Intercepted, topic: str | None, happened: Happened) -> Result:
        happened()
        if request.key == ApiKey.METADATA:
            return Result(later=_fail_metadata(code, request, topic))
        if request.key == ApiKey.PRODUCE and request.request.acks == 0:
            raise HangUp(f"{code.name}, by a fault of the test, to a Produce with acks=0")
        if topic is None:
            return Result(refusal(request.key, request.request, request.version, code))
        failing = with_topics(request.request, lambda name: name == topic, request.topic_name)
        refused = refusal(request.key, failing, request.version, code, by_topic=True)
        if set(request.topics()) <= {topic}:
            return Result(refused)
        return Result(later=_serve_others(request, topic, refused))

    return act


async def _serve_others(request: Intercepted, topic: str, refused: Any) -> Any:
    others = with_topics(request.request, lambda name: name != topic, request.topic_name)
    if request.key == ApiKey.FETCH:  # an error is sent at once; a session would lack the refused partitions
        others = replaced(others, max_wait_ms=0, session_id=0, session_epoch=_NO_SESSION)
    return merged(await request.response(others), refused)


async def _fail_metadata(code: ErrorCode, request: Intercepted, topic: str | None) -> Any:
    """Fail the topics only: a client cannot continue without the brokers in the response."""
    response = await request.response()
    topics = [
        replaced(each, error_code=int(code), partitions=()) if topic in {None, each.name} else each
        for each in response.topics
    ]
    return replaced(response, topics=topics)
