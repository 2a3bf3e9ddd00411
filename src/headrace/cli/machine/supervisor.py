"""Processes that are started together, started again when they die, and stopped in order."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final

from headrace.cli.machine.process import Ended, Member
from headrace.cli.process import Refused

FIRST_DELAY_S, LONGEST_DELAY_S = 0.5, 30.0
PROVEN_S: Final = 60.0  # a process that has run for so long may die again without a delay
ATTEMPTS: Final = 5  # failed starts in a row after which a process counts as one that cannot be started

logger = logging.getLogger("headrace")


class Backoff:
    """How long to wait before the next start: not at all, then longer and longer while that does not help."""

    def __init__(self) -> None:
        self._delay = 0.0

    def after(self, lived_s: float) -> float:
        """The delay after a life of so many seconds."""
        if lived_s >= PROVEN_S:
            self._delay = 0.0
        delay = self._delay
        self._delay = min(max(2 * delay, FIRST_DELAY_S), LONGEST_DELAY_S)
        return delay


class Supervisor:
    """Members in stages: all start at once, a later stage stops before an earlier one does."""

    def __init__(self, stages: Sequence[Sequence[Member]]) -> None:
        self._stages = stages
        self._cannot_start: set[Member] = set()

    async def start(self, members: Iterable[Member]) -> None:
        """Return when all of these are ready; Refused with the sentence of the first that ends instead."""
        starts = [asyncio.ensure_future(member.start()) for member in members]
        try:
            await asyncio.gather(*starts)
        except Ended as ended:
            raise Refused(str(ended)) from ended
        finally:
            for start in starts:
                start.cancel()

    async def watch(self, *, dispensable: int | None = None) -> None:
        """Start again whatever ends, for ever: those that run are not to suffer for one that does not.

        Refused once more than `dispensable` members cannot be started, if there is such a number.
        """
        keeping = [
            asyncio.ensure_future(self._keep(member, dispensable))
            for stage in self._stages
            for member in stage
        ]
        try:
            await asyncio.gather(*keeping)
        finally:
            for each in keeping:
                each.cancel()

    async def _keep(self, member: Member, dispensable: int | None) -> None:
        backoff, failures = Backoff(), 0
        ended = await member.ended()
        while True:
            delay = backoff.after(ended.lived_s)
            logger.error("%s; starting it again%s", ended, f" in {delay:g} s" if delay else "")
            await asyncio.sleep(delay)
            try:
                await member.start()
            except Ended as again:
                ended, failures = again, failures + 1
                if failures >= ATTEMPTS:
                    self._cannot_start.add(member)
                if dispensable is not None and len(self._cannot_start) > dispensable:
                    raise Refused(f"{ended}, {failures} times in a row") from ended
            else:
                logger.warning("%s is back, as process %d", member.name, member.pid)
                failures = 0
                self._cannot_start.discard(member)
                ended = await member.ended()

    async def stop(self) -> None:
        """Stop what runs, stage by stage; whoever takes too long is killed."""
        for stage in reversed(self._stages):
            await asyncio.gather(*(member.stop() for member in stage))
