"""One process of a cluster on one machine: how it starts, how it ends, and what it reports."""

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
from typing import TYPE_CHECKING, Any, Final

from headrace.cli.machine.member import EXECUTE, READY, REFUSAL, REFUSED

if TYPE_CHECKING:
    from headrace.coordination.zookeeper import Server

START_S: Final = 90.0  # to become ready; a broker waits up to a minute for its controller
STOP_S: Final = 20.0
_MEMBER: Final = "headrace.cli.machine.member"
_POLL_S: Final = 0.05
_MOST_UNREAD: Final = 4 * 1024 * 1024  # bytes of changed settings that a process has not read
_LEVELS: Final = {"WARNING": logging.WARNING, "ERROR": logging.ERROR, "CRITICAL": logging.CRITICAL}

logger = logging.getLogger("headrace")


class ProcessEnded(Exception):
    """A process has ended, or was stopped because it did not become ready in time; the message says how.

    `refused` is whether it cannot run with its settings, so that another attempt will not help.
    """

    def __init__(self, message: str, lived_s: float, *, refused: bool = False) -> None:
        super().__init__(message)
        self.lived_s = lived_s
        self.refused = refused


class Member(ABC):
    """One process, which may be started again once it has ended."""

    stop_s = STOP_S

    def __init__(self, name: str, log: Path | None, inherits: Sequence[int]) -> None:
        """`log` gets its output, or our stderr if it is None; it inherits the descriptors `inherits`."""
        self.name = name
        self._log = log
        self._inherits = inherits
        self._began = 0.0
        self._process: Process | None = None
        self._ready = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int:
        assert self._process is not None, self.name
        return self._process.pid

    async def start(self) -> None:
        """Start the process and return when it is ready; raise ProcessEnded if it never is."""
        self._began = asyncio.get_running_loop().time()
        self._ready.clear()
        try:
            self._process = await self._launch()
        except OSError as error:  # too many files, no memory, a log that cannot be written: a retry may help
            raise ProcessEnded(
                f"{self.name} cannot be started: {error}", lived_s=0.0, refused=True
            ) from error
        self._following = asyncio.ensure_future(self._follow(self._process))
        ended = asyncio.ensure_future(self.ended())
        ready = asyncio.ensure_future(self._ready.wait())
        try:
            await asyncio.wait((ended, ready), timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                raise ended.result()
            if not ready.done():
                await self.stop()
                raise ProcessEnded(f"{self.name} was not ready within {START_S:g} s{self._more()}", START_S)
        finally:
            ended.cancel()
            ready.cancel()

    async def ended(self) -> ProcessEnded:
        """Wait until the process ends, and return how it ended."""
        assert self._process is not None, self.name
        assert self._following is not None, self.name
        status = await self._process.wait()
        await asyncio.shield(self._following)  # it may have reported something at the end
        lived = asyncio.get_running_loop().time() - self._began
        return ProcessEnded(f"{self.name} {self._how(status)}", lived, refused=status == REFUSED)

    async def stop(self) -> None:
        """Terminate the process, and kill it if it takes too long; do nothing if it has ended."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            async with asyncio.timeout(self.stop_s):
                await self._process.wait()
        except TimeoutError:
            logger.warning("%s has not stopped within %g s: killing it", self.name, self.stop_s)
            await self.kill()

    async def kill(self) -> None:
        """Kill the process, as a crash would; do nothing if it has ended."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    @abstractmethod
    async def _launch(self) -> Process: ...

    @abstractmethod
    async def _follow(self, process: Process) -> None:
        """Set `_ready` when the process is ready; return when it reports nothing more."""

    async def _execute(self, *arguments: str, **streams: Any) -> Process:
        if self._log is not None:
            self._log.parent.mkdir(exist_ok=True)  # somebody may have deleted it
        with contextlib.nullcontext(sys.stderr) if self._log is None else self._log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", _MEMBER, self.name, str(os.getpid()), *arguments),
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the parent, which then stops its processes in order
                pass_fds=tuple(self._inherits),
                **{"stdout": log, **streams},
            )

    def _how(self, status: int) -> str:
        if status < 0:
            return f"was killed by {signal.Signals(-status).name}"
        if status == 0:
            return "was stopped by somebody else"
        ended = f"ended with status {status}"
        if self._log is None:
            return ended
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, self._log.stat().st_size - 1000))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError as error:
            return f"{ended}; its log cannot be read: {error}"
        return f"{ended}: {lines[-1].strip()} (more in {self._log})" if lines else ended + self._more()

    def _more(self) -> str:
        return "" if self._log is None else f"; see {self._log}"


class Service(Member):
    """One of our services; `first` are settings of its first start only.

    `addresses` are those of the last ready line.
    """

    def __init__(
        self,
        name: str,
        log: Path | None,
        inherits: Sequence[int],
        *,
        service: str,
        settings: Mapping[str, Any],
        first: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name, log, inherits)
        self._service = service
        self._settings = settings
        self._first: Mapping[str, Any] = first or {}
        self._refusal: str | None = None
        self.addresses: dict[str, str] = {}

    def change(self, settings: Mapping[str, Any]) -> None:
        """Send changed settings to the process if it runs, and use them when it is started again."""
        self._settings = settings
        process = self._process
        if process is None or process.returncode is not None or process.stdin is None:
            return
        if process.stdin.transport.get_write_buffer_size() > _MOST_UNREAD:
            logger.error("%s does not read changed settings: it uses them when it is restarted", self.name)
            return
        process.stdin.write(json.dumps(settings).encode() + b"\n")

    async def _launch(self) -> Process:
        self._refusal = None
        process = await self._execute(self._service, stdin=PIPE, stdout=PIPE)
        assert process.stdin is not None
        given = {"settings": {**self._settings, **self._first}, "shares_log": self._log is None}
        process.stdin.write(json.dumps(given).encode() + b"\n")
        self._first = {}
        return process

    async def _follow(self, process: Process) -> None:
        assert process.stdout is not None
        async for data in process.stdout:
            line = data.decode(errors="replace").strip()
            if line.startswith(READY):
                self.addresses = dict(pair.partition("=")[::2] for pair in line.removeprefix(READY).split())
                self._ready.set()
            elif line.startswith(REFUSAL):
                self._refusal = line.removeprefix(REFUSAL)
            else:
                self._log_line(line)

    def _log_line(self, line: str) -> None:
        """Log a line of the process: its level, then the message."""
        level, _, message = line.partition(" ")
        logger.log(_LEVELS.get(level, logging.WARNING), "%s: %s", self.name, message)

    def _how(self, status: int) -> str:
        return super()._how(status) if self._refusal is None else f"cannot run: {self._refusal}"


class Program(Member):
    """Another program; `serves` polls whether it is ready."""

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
        while process.returncode is None and not await self._serves():  # noqa: ASYNC110  there is no event
            await asyncio.sleep(_POLL_S)
        if process.returncode is None:
            self._ready.set()


def zookeeper_process(number: int, server: "Server", log: Path, inherits: Sequence[int] = ()) -> Program:
    """Return the process of a ZooKeeper server, which is ready once the server answers requests."""

    async def serves() -> bool:
        return await asyncio.to_thread(server.serves)

    return Program(f"zookeeper-{number}", log, inherits, command=server.prepare(), serves=serves)
