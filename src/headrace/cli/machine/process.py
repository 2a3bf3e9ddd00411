"""One process of a cluster on one machine, life after life: how it starts, how it ends, what it says."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from abc import ABC, abstractmethod
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from headrace.cli.machine.member import EXECUTE, READY, REFUSAL

START_S: Final = 90.0  # to be ready; a broker gives its controller a minute
STOP_S: Final = 20.0
_MEMBER: Final = "headrace.cli.machine.member"
_POLL_S: Final = 0.05
_LEVELS: Final = {"WARNING": logging.WARNING, "ERROR": logging.ERROR, "CRITICAL": logging.CRITICAL}

logger = logging.getLogger("headrace")


class Ended(Exception):
    """A process has ended, and how; or it has not become ready, which is no better."""

    def __init__(self, why: str, lived_s: float) -> None:
        super().__init__(why)
        self.lived_s = lived_s


class Member(ABC):
    """One process. It may be started again once it has ended."""

    stop_s = STOP_S

    def __init__(self, name: str, log: Path | None, inherits: Sequence[int]) -> None:
        """`log` takes all that it writes, else our stderr does; files `inherits` stay open in it."""
        self.name = name
        self._log = log
        self._inherits = inherits
        self._began = 0.0
        self._process: Process | None = None
        self._ready = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, self.name
        return self._process.pid

    async def start(self) -> None:
        """Start it, and return when it is ready; Ended if it never is."""
        self._began = asyncio.get_running_loop().time()
        self._ready.clear()
        try:
            self._process = await self._launch()
        except OSError as error:  # too many files, no memory, a log that cannot be written: it may pass
            raise Ended(f"{self.name} cannot be started: {error}", lived_s=0.0) from error
        self._following = asyncio.ensure_future(self._follow(self._process))
        ended = asyncio.ensure_future(self.ended())
        ready = asyncio.ensure_future(self._ready.wait())
        try:
            await asyncio.wait((ended, ready), timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                raise ended.result()
            if not ready.done():
                await self.stop()
                raise Ended(f"{self.name} was not ready within {START_S:g} s{self._more()}", START_S)
        finally:
            ended.cancel()
            ready.cancel()

    async def ended(self) -> Ended:
        """Wait for its end; return how that was."""
        assert self._process is not None, self.name
        assert self._following is not None, self.name
        status = await self._process.wait()
        await asyncio.shield(self._following)  # it may have said something at the end
        lived = asyncio.get_running_loop().time() - self._began
        return Ended(f"{self.name} {self._how(status)}", lived)

    async def stop(self) -> None:
        """Have it end by itself, or else at once; fine if it has."""
        process = self._process
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(self.stop_s):
                await process.wait()
        except TimeoutError:
            logger.warning("%s has not stopped within %g s, and is killed", self.name, self.stop_s)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    @abstractmethod
    async def _launch(self) -> Process: ...

    @abstractmethod
    async def _follow(self, process: Process) -> None:
        """Set `_ready` when it is, and return when there is nothing more to hear."""

    async def _execute(self, *what: str, **streams: Any) -> Process:
        if self._log is not None:
            self._log.parent.mkdir(exist_ok=True)  # somebody may have tidied up
        with contextlib.nullcontext(sys.stderr) if self._log is None else self._log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", _MEMBER, self.name, str(os.getpid()), *what),
                stderr=log,
                start_new_session=True,  # a Ctrl-C is for the parent, which then stops all of them in order
                pass_fds=tuple(self._inherits),
                **{"stdout": log, **streams},
            )

    def _how(self, status: int) -> str:
        if status < 0:
            return f"was killed by {signal.Signals(-status).name}"
        if status == 0:
            return "was told to stop, by somebody else"
        return f"ended with status {status}{self._last_words()}"

    def _last_words(self) -> str:
        if self._log is None:
            return ""
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, self._log.stat().st_size - 1000))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError as error:
            return f"; its log cannot be read: {error}"
        return f": {lines[-1].strip()} (more in {self._log})" if lines else self._more()

    def _more(self) -> str:
        return "" if self._log is None else f"; see {self._log}"


class Service(Member):
    """A module of ours whose `serve` runs until it is told to stop; in its first life with `first`, too."""

    def __init__(
        self,
        name: str,
        log: Path | None,
        inherits: Sequence[int],
        *,
        module: str,
        settings: Mapping[str, Any],
        first: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name, log, inherits)
        self._module = module
        self._settings = settings
        self._first: Mapping[str, Any] = first or {}
        self._refusal: str | None = None

    async def _launch(self) -> Process:
        self._refusal = None
        process = await self._execute(self._module, stdin=PIPE, stdout=PIPE)
        assert process.stdin is not None
        process.stdin.write(json.dumps({**self._settings, **self._first}).encode())
        process.stdin.close()
        self._first = {}
        return process

    async def _follow(self, process: Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self._heard(line.decode(errors="replace").strip())

    def _heard(self, line: str) -> None:
        if line.startswith(READY):
            self._ready.set()
        elif line.startswith(REFUSAL):
            self._refusal = line.removeprefix(REFUSAL)
        else:
            level, _, message = line.partition(" ")
            logger.log(_LEVELS.get(level, logging.WARNING), "%s: %s", self.name, message)

    def _how(self, status: int) -> str:
        return super()._how(status) if self._refusal is None else f"cannot run: {self._refusal}"


class Program(Member):
    """Somebody else's program; whether it serves is found out by asking it."""

    def __init__(
        self,
        name: str,
        log: Path,
        inherits: Sequence[int],
        *,
        command: Sequence[str],
        serves: Callable[[], Awaitable[bool]],
    ) -> None:
        super().__init__(name, log, inherits)
        self._command = command
        self._serves = serves

    async def _launch(self) -> Process:
        return await self._execute(EXECUTE, *self._command, stdin=DEVNULL)

    async def _follow(self, process: Process) -> None:
        while process.returncode is None and not await self._serves():  # noqa: ASYNC110  it can but be asked
            await asyncio.sleep(_POLL_S)
        if process.returncode is None:
            self._ready.set()
