"""What a pipeline keeps between two runs: its checkpoints, who runs it, and where its queries begin."""

import fcntl
import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from headrace.pipeline.checkpoints import read_checkpoint
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.paths import local_directory

DIRECTORY: Final = ".headrace"
_MOMENT_S: Final = 0.2


class State:
    """A directory: on this machine, or on storage that all machines of a Spark cluster share."""

    def __init__(self, root: Path | str, pipeline: str) -> None:
        self.path = local_directory(str(root), "the state of a pipeline") / pipeline
        self._lock = self.path / "running"
        self._replay = self.path / "replay.json"
        self._initial = self.path / "initial-offsets.json"
        self._is_mine = False

    def checkpoint(self, query: str) -> Path:
        return self.path / "checkpoints" / query

    def has_run(self, query: str) -> bool:
        """Whether its first batch was planned at least: from then on its checkpoint says where it is."""
        return read_checkpoint(self.checkpoint(query)) is not None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Be the one that runs it: two would take each other's place. Who is may say so again."""
        if self._is_mine:
            yield
            return
        self.path.mkdir(parents=True, exist_ok=True)
        with self._lock.open("a+") as file:
            self._take(file)
            file.truncate(0)
            file.write(f"{os.getpid()} {socket.gethostname()}")
            file.flush()
            self._is_mine = True
            try:
                yield
            finally:
                self._is_mine = False
                file.truncate(0)

    def _take(self, file: IO[str]) -> None:
        """Lock the file. Who asks for the `pid` has it locked for a moment, and is waited for."""
        deadline = time.monotonic() + _MOMENT_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() > deadline:
                    who = f"pipeline {self.path.name} is running already, as process {self.pid or '?'}"
                    raise PipelineError(f"{who}: `headrace pipeline stop` ends it") from None
                time.sleep(_MOMENT_S / 10)
            else:
                return

    @property
    def pid(self) -> int | None:
        """The process that runs it, if one does."""
        owner = self._owner
        return None if owner is None else owner[0]

    @property
    def _owner(self) -> tuple[int, str] | None:
        """The process, and its machine: a directory may be shared by several."""
        try:
            with self._lock.open("r") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    pid, _, host = file.read().strip().partition(" ")
                    return (int(pid), host) if pid.isdecimal() else None
        except FileNotFoundError:
            return None
        return None

    def stop(self) -> int | None:
        """Ask the process that runs it to end, after the batches it is at; which it was."""
        owner = self._owner
        if owner is None:
            return None
        pid, host = owner
        if host != socket.gethostname():
            raise PipelineError(f"it runs on {host}, as process {pid}: stop it there")
        os.kill(pid, signal.SIGTERM)
        return pid

    def reset(self) -> list[str]:
        """Forget how far it was, so that it begins anew; what its sinks have stays. Its queries."""
        with self.running():
            self._replay.unlink(missing_ok=True)
            return self._forget()

    def _forget(self) -> list[str]:
        found = sorted(each.name for each in (self.path / "checkpoints").glob("*") if each.is_dir())
        shutil.rmtree(self.path / "checkpoints", ignore_errors=True)
        self._initial.unlink(missing_ok=True)
        return found

    # -- where queries begin -------------------------------------------------------------------

    def replay(self, since_ms: int) -> None:
        """Begin anew, with records from that time on."""
        with self.running():
            # First: without it, all that there is would be read again.
            _replace(self._replay, {"since_ms": since_ms})
            self._forget()

    @property
    def since_ms(self) -> int | None:
        """Where a replay begins that was asked for."""
        found = _read(self._replay)
        return None if found is None else int(found["since_ms"])

    def keep_initial_offsets(self, source: str, offsets: Mapping[str, Any]) -> None:
        """Have all queries of `source` begin there, also those that begin after a restart."""
        _replace(self._initial, {**self.initial_offsets, source: offsets})

    @property
    def initial_offsets(self) -> Mapping[str, Any]:
        """What is kept of each source."""
        return _read(self._initial) or {}

    def have_begun(self, queries: Iterable[str]) -> bool:
        """Whether all queries have begun. Then one that is added later begins where its source says."""
        if not all(map(self.has_run, queries)):
            return False
        self._replay.unlink(missing_ok=True)
        self._initial.unlink(missing_ok=True)
        return True


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def _replace(path: Path, value: Any) -> None:
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(value))
    beside.rename(path)
