"""The processes in which values are written and read by schemas: few, started when they are needed.

What is here waits: it is for threads.
"""

import logging
import marshal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from queue import Empty, LifoQueue
from typing import Any, Final

from headrace.http.gateway.codec_worker import (
    JOB_CPU_S,
    MOST_MEMORY,
    Job,
    Result,
    Spec,
    read_frame,
    write_frame,
)
from headrace.http.gateway.encoding import BadValue, TooCostly
from headrace.http.problems import Problem

PROCESSES: Final = 2
SLICE_BYTES: Final = 1024 * 1024  # of items in a job, unless one item is larger
SLICE_ITEMS: Final = 1000
WAIT_S: Final = 10.0  # for a process that others use
STOP_S: Final = 2.0
_COMMAND: Final = (sys.executable, "-P", "-m", "headrace.http.gateway.codec_worker")

logger = logging.getLogger(__name__)


class TooLarge(BadValue):
    """What was encoded is larger than was allowed for."""


class CodecProcesses:
    """A pool of worker processes."""

    def __init__(self, cpu_s: float = JOB_CPU_S) -> None:
        """Every job may take so many seconds of CPU time."""
        self._cpu_s = cpu_s
        self._idle: LifoQueue[_Process | None] = LifoQueue()
        self._lock = threading.Lock()
        self._all: set[_Process] = set()
        self._closed = False
        for _ in range(PROCESSES):
            self._idle.put(None)  # one that is yet to be started

    def encode(self, key: bytes, spec: Spec, values: Sequence[Any], most_bytes: int) -> list[bytes]:
        """Every value as bytes. BadValue, with `place` set, if one does not fit; TooLarge, TooCostly."""
        encoded: list[bytes] = []
        left = most_bytes
        for items in _slices(values):
            part = self._do(Job(key, spec, "encode", items, left), len(encoded))
            left -= sum(map(len, part))
            encoded += part
        return encoded

    def decode(self, key: bytes, spec: Spec, data: bytes, *, tagged: bool) -> Any:
        """The value that the bytes are. BadValue if they are none, TooCostly."""
        return self._do(Job(key, spec, "tagged" if tagged else "decode", [data], 0), 0)[0]

    def close(self) -> None:
        """Stop all processes."""
        with self._lock:
            self._closed = True
            processes, self._all = self._all, set()
        for each in processes:
            each.stop()

    def _do(self, job: Job, before: int) -> list[Any]:
        with self._process() as process:
            result = process.do(job)
        if result.outcome == "done":
            return result.done
        if result.outcome == "too large":
            raise TooLarge(f"the encoded values have more than {job.most_bytes:,} bytes")
        if result.outcome == "invalid":
            raise BadValue(f"the schema cannot be used here: {result.message}")
        bad = BadValue(result.message)
        bad.place = before + len(result.done)
        raise bad

    @contextmanager
    def _process(self) -> "Iterator[_Process]":
        try:
            process = self._idle.get(timeout=WAIT_S)
        except Empty:
            said = f"all {PROCESSES} processes that work by schemas are busy: try again later"
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, 50302, said) from None
        try:
            if process is None:
                process = self._started()
            yield process
        finally:
            if process is not None and not process.is_alive:
                with self._lock:
                    self._all.discard(process)
                process = None
            self._idle.put(process)

    def _started(self) -> "_Process":
        with self._lock:
            if self._closed:
                raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, 50302, "the gateway is stopping")
            process = _Process(self._cpu_s)
            self._all.add(process)
            return process


class _Process:
    """One worker; it is used by one thread at a time."""

    def __init__(self, cpu_s: float) -> None:
        self._process = subprocess.Popen(  # noqa: S603  our own command
            (*_COMMAND, str(cpu_s)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._known: set[bytes] = set()
        self.is_alive = True

    def do(self, job: Job) -> Result:
        """The result; TooCostly if the process ended instead, which it does where the job is too much."""
        result = self._send(job._replace(spec=None) if job.key in self._known else job)
        if result.outcome == "unknown":  # it has had many others since
            result = self._send(job)
        if result.outcome != "invalid":
            self._known.add(job.key)
        return result

    def _send(self, job: Job) -> Result:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            write_frame(self._process.stdin, job)
            frame = read_frame(self._process.stdout)
        except OSError:
            frame = None
        if frame is None:
            self.is_alive = False
            self.stop()
            logger.warning(
                "a value was refused: the process that worked on it ended with %d", self._process.returncode
            )
            raise TooCostly(f"this takes too much time or more than {MOST_MEMORY >> 20} MiB by its schema")
        return Result(*frame)

    def stop(self) -> None:
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def _slices(values: Sequence[Any]) -> Iterator[list[bytes]]:
    """The values, marshalled, in jobs of bounded size."""
    items: list[bytes] = []
    size = 0
    for place, value in enumerate(values):
        try:
            item = marshal.dumps(value)
        except ValueError as error:
            bad = BadValue(f"this is nested too deeply: {error}")
            bad.place = place
            raise bad from None
        if items and (size + len(item) > SLICE_BYTES or len(items) == SLICE_ITEMS):
            yield items
            items, size = [], 0
        items.append(item)
        size += len(item)
    if items:
        yield items
