"""The state of a pipeline between runs: checkpoints, the running process, where queries start."""

import fcntl
import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from headrace.pipeline.checkpoints import read_checkpoint
from headrace.pipeline.declaration import Pipeline
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.paths import local_directory
from headrace.pipeline.shared_queries import Division, SharedQuery, from_json, to_json
from headrace.spark.offsets import to_json as offsets_to_json

DIRECTORY: Final = ".headrace"
_LOCK_TIMEOUT_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """The shared queries of the last run, and the offsets where sinks continue that have left one.

    The offsets are by the name of the sink's own query.
    """

    queries: tuple[SharedQuery, ...] = ()
    left: Mapping[str, Any] = field(default_factory=dict)


class State:
    """A directory, local or on storage that all machines of a Spark cluster share."""

    def __init__(self, root: Path | str, pipeline: str) -> None:
        self.path = local_directory(str(root), "the state of a pipeline") / pipeline
        self._lock = self.path / "running"
        self._replay = self.path / "replay.json"
        self._initial = self.path / "initial-offsets.json"
        self._sharing = self.path / "shared-queries.json"
        self._is_mine = False

    def checkpoint(self, query: str) -> Path:
        return self.path / "checkpoints" / query

    def has_run(self, query: str) -> bool:
        """Return whether the query has planned a batch, so that its checkpoint has its position."""
        return read_checkpoint(self.checkpoint(query)) is not None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Hold the lock of the pipeline, of which one process may run at a time. The holder may nest this."""
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
        """Lock the file; a process that reads the `pid` holds the lock for a moment."""
        deadline = time.monotonic() + _LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() > deadline:
                    raise PipelineError(
                        f"pipeline {self.path.name} is running already, as process {self.pid or '?'}: "
                        "`headrace pipeline stop` ends it"
                    ) from None
                time.sleep(_LOCK_TIMEOUT_S / 10)
            else:
                return

    @property
    def pid(self) -> int | None:
        """The process that runs the pipeline, if there is one."""
        owner = self._owner
        return None if owner is None else owner[0]

    @property
    def _owner(self) -> tuple[int, str] | None:
        """The process and its host, since several machines may share the directory."""
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
        """Signal the process to stop after its current batches; return its id."""
        owner = self._owner
        if owner is None:
            return None
        pid, host = owner
        if host != socket.gethostname():
            raise PipelineError(f"the pipeline runs on {host}, as process {pid}: stop it there")
        os.kill(pid, signal.SIGTERM)
        return pid

    def reset(self) -> list[str]:
        """Delete the checkpoints, so that the pipeline starts anew; return its queries. Results stay."""
        with self.running():
            self._replay.unlink(missing_ok=True)
            return self._delete_checkpoints()

    def _delete_checkpoints(self) -> list[str]:
        found = sorted(each.name for each in (self.path / "checkpoints").glob("*") if each.is_dir())
        shutil.rmtree(self.path / "checkpoints", ignore_errors=True)
        self._initial.unlink(missing_ok=True)
        self._sharing.unlink(missing_ok=True)
        return found

    # -- shared queries ------------------------------------------------------------------------

    @property
    def sharing(self) -> Sharing:
        found = _read(self._sharing) or {}
        return Sharing(queries=tuple(from_json(found.get("queries", {}))), left=found.get("left", {}))

    def share(self, pipeline: Pipeline, division: Division) -> Sharing:
        """Store the shared queries of this run, and the positions of sinks that have left one."""
        left = dict(self.sharing.left)
        for sink, shared in division.left.items():
            checkpoint = read_checkpoint(self.checkpoint(shared))
            if checkpoint is not None and checkpoint.offsets:
                left[pipeline.query_name(sink)] = offsets_to_json(checkpoint.offsets)
        _replace(self._sharing, {"queries": to_json(division.shared), "left": left})
        return self.sharing

    # -- where queries start -------------------------------------------------------------------

    def replay(self, since_ms: int) -> None:
        """Start anew, with records from that time on."""
        with self.running():
            # Written first: without it, all records would be read again.
            _replace(self._replay, {"since_ms": since_ms})
            self._delete_checkpoints()

    @property
    def since_ms(self) -> int | None:
        """Where a replay starts, if one was requested."""
        found = _read(self._replay)
        return None if found is None else int(found["since_ms"])

    def store_initial_offsets(self, source: str, offsets: Mapping[str, Any]) -> None:
        """Store where all queries of `source` start, also those that start after a restart."""
        _replace(self._initial, {**self.initial_offsets, source: offsets})

    @property
    def initial_offsets(self) -> Mapping[str, Any]:
        """The stored offsets by source."""
        return _read(self._initial) or {}

    def have_begun(self, queries: Iterable[str]) -> bool:
        """Return whether all queries have begun; if so, delete the stored start, which only they use."""
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
