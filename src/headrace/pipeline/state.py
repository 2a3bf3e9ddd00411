"""The state of a pipeline between runs: checkpoints, the running process, where queries start."""

import json
import os
import signal
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from headrace.pipeline.checkpoints import read_checkpoint
from headrace.pipeline.declaration import Pipeline
from headrace.pipeline.errors import LockLost, PipelineError
from headrace.pipeline.shared_queries import Division, SharedQuery, from_json, to_json
from headrace.pipeline.storage.file_lock import FileLock
from headrace.pipeline.storage.files import delete_tree, replace_text, state_root
from headrace.pipeline.storage.lease import Lease
from headrace.pipeline.storage.object_store import RemotePath, StoragePath
from headrace.spark.offsets import to_json as offsets_to_json

DIRECTORY: Final = ".headrace"
_LOOK_S: Final = 1.0  # between two looks for a request to stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """The shared queries of the last run, and the offsets where sinks continue that have left one.

    The offsets are by the name of the sink's own query.
    """

    queries: tuple[SharedQuery, ...] = ()
    left: Mapping[str, Any] = field(default_factory=dict)


class PipelineState:
    """A directory, local or on storage that all machines of a Spark cluster share.

    `root` is a path or a URL of an object store: s3a://bucket/state, gs://…, abfss://….
    """

    def __init__(self, root: StoragePath | str, pipeline: str) -> None:
        base = root if isinstance(root, RemotePath) else state_root(str(root))
        self.path: StoragePath = base / pipeline
        what = f"pipeline {self.path.name}"
        self._lock: FileLock | Lease
        if isinstance(self.path, RemotePath):
            self._lock = Lease(self.path.store, (self.path / "running").key, what)
        else:
            self._lock = FileLock(self.path / "running", what)
        self._stop = self.path / "stop.json"
        self._next_look = 0.0
        self._replay = self.path / "replay.json"
        self._initial = self.path / "initial-offsets.json"
        self._sharing = self.path / "shared-queries.json"
        self._is_mine = False

    def checkpoint(self, query: str) -> StoragePath:
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
        with self._lock.held():
            self._is_mine = True
            self._stop.unlink(missing_ok=True)  # of an earlier run
            try:
                yield
            finally:
                self._is_mine = False

    def must_stop(self) -> bool:
        """Return whether another machine has asked the running process to stop; a look once a second.

        LockLost if another process may be running the pipeline by now.
        """
        if self._lock.is_lost:
            raise LockLost(
                f"pipeline {self.path.name} has lost the lock in {self.path}: the storage was not available, "
                "or another process has taken it over"
            )
        now = time.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + _LOOK_S
        try:
            return _read(self._stop) is not None
        except PipelineError:  # the storage is not available: if that lasts, the lock is lost
            return False

    @property
    def pid(self) -> int | None:
        """The process that runs the pipeline, if there is one."""
        owner = self._lock.owner()
        return None if owner is None else owner[0]

    def stop(self) -> int | None:
        """Have the process stop after its current batches, by signal or through storage; return its id."""
        owner = self._lock.owner()
        if owner is None:
            return None
        pid, host = owner
        if host == socket.gethostname() and isinstance(self.path, Path):
            os.kill(pid, signal.SIGTERM)
        else:
            _replace(self._stop, {"pid": pid, "host": host})
        return pid

    def reset(self) -> list[str]:
        """Delete the checkpoints, so that the pipeline starts anew; return its queries. Results stay."""
        with self.running():
            self._replay.unlink(missing_ok=True)
            return self._delete_checkpoints()

    def _delete_checkpoints(self) -> list[str]:
        directory = self.path / "checkpoints"
        found = sorted(path.name for path in directory.iterdir()) if directory.is_dir() else []
        delete_tree(directory)
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


def _read(path: StoragePath) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def _replace(path: StoragePath, value: Any) -> None:
    replace_text(path, json.dumps(value))
