"""Whether the cluster is still there: asked once for all who wait for something to come."""

import asyncio
import math
import time
from typing import Annotated, Final

from fastapi import Depends
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request

from headrace.client.errors import ClientError
from headrace.http.reach import Reach

FRESH_S: Final = 1.0  # for so long an answer counts
ATTEMPTS: Final = 2  # a connection that was kept may be to a broker that has been restarted


class Presence:
    """There is one in a gateway, so that however many wait, one thread asks."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._asking = asyncio.Lock()
        self._asked_s = -math.inf
        self._missing = ""

    async def missing(self) -> str:
        """Why nothing can come; empty if the cluster answers."""
        async with self._asking:
            if time.monotonic() - self._asked_s > FRESH_S:
                self._missing = await run_in_threadpool(self._ask)
                self._asked_s = time.monotonic()
            return self._missing

    def _ask(self) -> str:
        why = ""
        for _ in range(ATTEMPTS):
            try:
                self._reach.check()
            except ClientError as error:
                why = str(error)
            else:
                return ""
        return why


def presence_of(request: Request) -> Presence:
    presence = request.app.state.presence
    assert isinstance(presence, Presence)
    return presence


Watched = Annotated[Presence, Depends(presence_of)]
