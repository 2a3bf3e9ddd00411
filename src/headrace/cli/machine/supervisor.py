"""Start processes together, restart those that die, and stop them in order."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Final

from headrace.cli.machine.process import Member, ProcessEnded
from headrace.cli.support.process import CommandFailed

FIRST_DELAY_S, LONGEST_DELAY_S = 0.5, 30.0
PROVEN_S: Final = 60.0  # a process that has run for this long is restarted without a delay
ATTEMPTS: Final = 5  # failed starts in a row after which a process counts as unable to start

logger = logging.getLogger("headrace")


class Backoff:
    """The delay before the next start: none at first, then longer while the process keeps dying."""

    def __init__(self) -> None:
        self._delay = 0.0

    def after(self, lived_s: float) -> float:
        """Return the delay after the process has lived for `lived_s` seconds."""
        if lived_s >= PROVEN_S:
            self._delay = 0.0
        delay = self._delay
        self._delay = min(max(2 * delay, FIRST_DELAY_S), LONGEST_DELAY_S)
        return delay


class Supervisor:
    """Processes in stages: all start at once, and a later stage stops before an earlier one."""

    def __init__(self, stages: Sequence[Sequence[Member]]) -> None:
        self._stages = stages
        self._cannot_start: set[Member] = set()

    async def start(self, members: Iterable[Member]) -> None:
        """Return when all members are ready; raise CommandFailed if one ends before it is ready."""
        starts = [asyncio.ensure_future(member.start()) for member in members]
        try:
            await asyncio.gather(*starts)
        except ProcessEnded as ended:
            raise CommandFailed(str(ended)) from ended
        finally:
            for start in starts:
                start.cancel()

    async def start_most(self, members: Sequence[Member]) -> None:
        """Return when each member is ready or has failed, for example because of its disk.

        Those that have failed are restarted by `watch`. Raise CommandFailed if one cannot run with its
        settings, or if all have failed.
        """
        outcomes = await asyncio.gather(*(member.start() for member in members), return_exceptions=True)
        failures = [outcome for outcome in outcomes if outcome is not None]
        for failure in failures:
            if not isinstance(failure, ProcessEnded):
                raise failure
            if failure.refused or len(failures) == len(members):
                raise CommandFailed(str(failure)) from failure

    async def watch(self, *, dispensable: int | None = None) -> None:
        """Restart every process that ends, without end: one that fails does not stop the others.

        Raise CommandFailed once more than `dispensable` members cannot be started, if that is not None.
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
            logger.error("%s; restarting it%s", ended, f" in {delay:g} s" if delay else "")
            await asyncio.sleep(delay)
            try:
                await member.start()
            except ProcessEnded as again:
                ended, failures = again, failures + 1
                if failures >= ATTEMPTS:
                    self._cannot_start.add(member)
                if dispensable is not None and len(self._cannot_start) > dispensable:
                    raise CommandFailed(f"{ended}, {failures} times in a row") from ended
            else:
                logger.warning("%s runs again, as process %d", member.name, member.pid)
                failures = 0
                self._cannot_start.discard(member)
                ended = await member.ended()

    async def stop(self) -> None:
        """Stop all processes, stage by stage; a process that takes too long is killed."""
        for stage in reversed(self._stages):
            await asyncio.gather(*(member.stop() for member in stage))
