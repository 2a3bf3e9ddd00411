"""The throttle time in responses (KIP-219: a response is sent at once, then the channel is muted)."""

import copy
from functools import cache
from typing import Final

from headrace.broker.results import Encoded, Reply
from headrace.protocol.api import response_class
from headrace.protocol.message import Message

_FIELD: Final = "throttle_time_ms"
_BYTES: Final = 4


def with_throttle_time(reply: Reply, throttle_ms: int, key: int, version: int) -> tuple[Reply, int]:
    """Return a response with the larger of `throttle_ms` and its own throttle time, and that time.

    The controller, and the handler of Fetch, have set one already.
    """
    if isinstance(reply, Message):
        own = int(getattr(reply, _FIELD, 0))
        if throttle_ms > own and hasattr(reply, _FIELD):
            reply = copy.copy(reply)  # others may share it
            setattr(reply, _FIELD, throttle_ms)
    elif isinstance(reply, Encoded) and reply.body and _is_first(key, version):
        first, *rest = reply.body
        own = int.from_bytes(first[:_BYTES], "big")
        if throttle_ms > own:
            reply = Encoded([throttle_ms.to_bytes(_BYTES, "big"), memoryview(first)[_BYTES:], *rest])
    else:
        own = 0
    return reply, max(own, throttle_ms)


@cache  # bounded: only for responses that were encoded
def _is_first(key: int, version: int) -> bool:
    """Return whether the throttle time is the first field of a response."""
    fields = (each for each in response_class(key).__fields__ if each.tag is None and each.exists_in(version))
    return next((each.name for each in fields), None) == _FIELD
