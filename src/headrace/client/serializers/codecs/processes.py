"""A pool of processes that encode and decode values by schemas. Calls block, so they are for threads."""

import hashlib
import logging
import marshal
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, LifoQueue
from typing import Any, Final, Literal, NamedTuple

from headrace.client.errors import ClientError
from headrace.client.serializers.codecs import worker
from headrace.client.serializers.codecs.base import BadValue, TooCostly

PROCESSES: Final = 2
SLICE_BYTES: Final = 1024 * 1024  # of the items in a job, unless one item is larger
SLICE_ITEMS: Final = 1000
WAIT_S: Final = 10.0  # for a free process
STOP_S: Final = 2.0
_COMMAND: Final = (sys.executable, "-P", "-m", "headrace.client.serializers.codecs.worker")

logger = logging.getLogger(__name__)


class NoProcess(Exception):
    """All processes are busy, or the pool is closed: the same call may succeed later."""


class TooLarge(BadValue):
    """The encoded values have more bytes than allowed."""


class Matched(NamedTuple):
    """Whether each message matches; None if the expression cannot be applied to it, and why for the first."""

    found: list[bool | None]
    reason: str


class CodecProcesses:
    """A pool of worker processes, each started when it is first needed."""

    def __init__(self, cpu_s: float = worker.JOB_CPU_S) -> None:
        """A job may take `cpu_s` seconds of CPU time."""
        self._cpu_s = cpu_s
        self._idle: LifoQueue[_Process | None] = LifoQueue()
        self._lock = threading.Lock()
        self._all: set[_Process] = set()
        self._closed = False
        for _ in range(PROCESSES):
            self._idle.put(None)  # a process to start

    def encode(
        self, key: bytes, spec: worker.Spec, values: Sequence[Any], max_bytes: int, *, plain: bool = False
    ) -> list[bytes]:
        """Return every value as bytes; raise BadValue (with the value's index), TooLarge or TooCostly.

        With `plain` they are JSON as `decode` returns it, not `tagged`.
        """
        encoded: list[bytes] = []
        left = max_bytes
        for items in _slices(values):
            what: Literal["encode", "encode plain"] = "encode plain" if plain else "encode"
            part = self._do(worker.Job(key, spec, what, items, left), len(encoded))
            left -= sum(map(len, part))
            encoded += part
        return encoded

    def decode(
        self, key: bytes, spec: worker.Spec, data: bytes, *, tagged: bool = False, numbers: bool = False
    ) -> Any:
        """Return the decoded value; raise BadValue if the bytes are invalid, or TooCostly."""
        what: Literal["decode", "tagged", "numbers"] = (
            "tagged" if tagged else "numbers" if numbers else "decode"
        )
        return self._do(worker.Job(key, spec, what, [data], 0), 0)[0]

    def match(self, expression: str, messages: Sequence[Mapping[str, Any]]) -> Matched:
        """Return whether each message matches an expression; with no message, check the expression.

        Raise ClientError if it cannot be used, or takes too much CPU time or memory.
        """
        key = b"expression " + hashlib.sha256(expression.encode("utf-8", "surrogatepass")).digest()
        found: list[bool | None] = []
        reason = ""
        for items in _slices(messages) if messages else [[]]:
            job = worker.Job(key, expression, "match", items, 0)
            try:
                with self._process() as process:
                    result = process.do(job, spec_is_short=True)
            except TooCostly:
                why = "the filter takes too much CPU time or memory: use a simpler one, or fewer messages"
                raise ClientError(why) from None
            if result.outcome != "done":
                raise ClientError(f"the filter is not valid: {result.message}")
            found += result.done
            reason = reason or result.message
        return Matched(found, reason)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            processes, self._all = self._all, set()
        for process in processes:
            process.stop()

    def _do(self, job: worker.Job, before: int) -> list[Any]:
        with self._process() as process:
            result = process.do(job)
        if result.outcome == "done":
            return result.done
        if result.outcome == "too large":
            raise TooLarge(f"the encoded values have more than {job.max_bytes:,} bytes")
        if result.outcome == "invalid":
            raise BadValue(f"the schema cannot be used here: {result.message}")
        raise BadValue(result.message, before + len(result.done))

    @contextmanager
    def _process(self) -> "Iterator[_Process]":
        try:
            process = self._idle.get(timeout=WAIT_S)
        except Empty:
            why = f"all {PROCESSES} processes that encode by schemas are busy: try again later"
            raise NoProcess(why) from None
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
                raise NoProcess("the processes that encode by schemas are stopping")
            process = _Process(self._cpu_s)
            self._all.add(process)
            return process


class _Process:
    """One worker process, for one thread at a time."""

    def __init__(self, cpu_s: float) -> None:
        self._process = subprocess.Popen(  # noqa: S603  our own command
            (*_COMMAND, str(cpu_s)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._known: set[bytes] = set()
        self.is_alive = True

    def do(self, job: worker.Job, *, spec_is_short: bool = False) -> worker.Result:
        """Return the result; raise TooCostly if the kernel has killed the process for its limits."""
        if spec_is_short:
            return self._send(job)
        result = self._send(job._replace(spec=None) if job.key in self._known else job)
        if result.outcome == "unknown":  # the worker has dropped the schema since
            result = self._send(job)
        if result.outcome != "invalid":
            self._known.add(job.key)
        return result

    def _send(self, job: worker.Job) -> worker.Result:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            worker.write_frame(self._process.stdin, pickle.dumps(tuple(job)))
            frame = worker.read_frame(self._process.stdout)
        except OSError:
            frame = None
        if frame is None:
            self.is_alive = False
            self.stop()
            logger.warning(
                "a value is refused: the process that encoded or decoded it ended with status %d",
                self._process.returncode,
            )
            raise TooCostly(
                f"this takes too much CPU time or more than {worker.MAX_MEMORY >> 20} MiB with its schema"
            )
        # Not pickled: a worker that a schema has broken must not run code here.
        return worker.Result(*marshal.loads(frame))  # noqa: S302

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
    """Yield the marshalled values in slices of bounded size."""
    items: list[bytes] = []
    size = 0
    for index, value in enumerate(values):
        try:
            item = marshal.dumps(value)
        except ValueError as error:
            raise BadValue(f"this is nested too deeply: {error}", index) from None
        if items and (size + len(item) > SLICE_BYTES or len(items) == SLICE_ITEMS):
            yield items
            items, size = [], 0
        items.append(item)
        size += len(item)
    if items:
        yield items
