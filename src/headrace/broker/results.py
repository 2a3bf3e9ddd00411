"""What a handler returns: a response that is ready now, that is awaited, or that is computed in slices."""

from collections.abc import Awaitable
from typing import Any, Final, NamedTuple

from headrace.broker.slices import Steps, in_slices
from headrace.protocol.fields import Buffer
from headrace.protocol.message import Message


class Encoded(NamedTuple):
    """The body of a response that is encoded already, in the version of the request."""

    body: list[Buffer]


Reply = Message | Encoded | None
"""A response; None is no response at all, which only Produce with acks=0 gives."""


class Result:
    """What every handler returns: a response that is ready, one that is awaited, or steps to a `Result`.

    `steps`: the response takes long to compute. The connection continues it in slices of time, and handles
    its later requests afterwards. `later`: the response waits for something. Later requests of the connection
    are handled meanwhile, and the responses still go out in order. Neither of them: `reply` is the response.
    """

    __slots__ = ("later", "reply", "steps")

    def __init__(
        self,
        reply: Reply = None,
        *,
        later: Awaitable[Reply] | None = None,
        steps: "Steps[Result] | None" = None,
    ) -> None:
        self.reply = reply
        self.later = later
        self.steps = steps

    async def response(self) -> Any:
        """Return the response, after all steps and waiting."""
        result = self if self.steps is None else await in_slices(self.steps)
        return result.reply if result.later is None else await result.later


NO_RESPONSE: Final = Result()
"""The result of a Produce with acks=0."""
