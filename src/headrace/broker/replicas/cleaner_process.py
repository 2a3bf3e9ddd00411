"""The broker's side of the process that compacts: it starts it, sends it plans, and kills it to stop it."""

import logging
import os
import pickle
import select
import subprocess
import sys
from collections.abc import Callable
from typing import Final

from headrace.protocol.errors import InvalidRecord
from headrace.storage.compaction.cleaner import Compacted, CompactionStopped, Group, Plan, remove_cleaned
from headrace.storage.compaction.task import Done, Failed, Task
from headrace.storage.errors import CorruptLog, StorageError

_PROGRAM: Final = "headrace.storage.compaction.process"
_LOOK_MS: Final = 100  # between two looks at whether the compaction is to be stopped

logger = logging.getLogger(__name__)


class CompactionFailed(StorageError):
    """The compaction has failed, or its process has ended; the log is as it was before."""


class CleanerProcess:
    """A process that lives from `start` to `close`, and performs one plan at a time."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._tasks, self._outcomes = process.stdin, process.stdout

    @classmethod
    def start(cls) -> "CleanerProcess":
        """Start the process; the thread that calls this has to live as long as the process is needed.

        It inherits nothing but stderr: no connection of the broker stays open because of it.
        """
        process = subprocess.Popen(  # noqa: S603  our own program
            [sys.executable, "-P", "-m", _PROGRAM, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            close_fds=True,
            env=os.environ
            | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},  # so it finds this package
        )
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End the process at once, and wait until it has ended."""
        self._process.kill()
        self._process.wait()
        self._tasks.close()
        self._outcomes.close()

    def run_compaction(
        self, plan: Plan, *, max_keys: int, bytes_per_second: float, stop: Callable[[], bool]
    ) -> Compacted:
        """Do what `storage.cleaner.run_compaction` does, in the process. Blocks: call it in a thread."""
        try:
            done = self._perform(
                Task.of(plan, max_keys=max_keys, bytes_per_second=bytes_per_second),
                lambda: stop() or plan.is_stale(),
            )
        except BaseException:
            for segment in plan.segments:
                remove_cleaned(plan.directory, segment.base_offset)
            if plan.is_stale():
                raise CompactionStopped from None
            raise
        for path, position, header, why in done.unreadable:
            plan.note_unreadable(path, position, header, InvalidRecord(why))
        by_offset = {segment.base_offset: segment for segment in plan.segments}
        groups = tuple(Group(tuple(by_offset[offset] for offset in group)) for group in done.groups)
        return Compacted(plan, groups, done.end_offset)

    def _perform(self, task: Task, stop: Callable[[], bool]) -> Done:
        try:
            self._tasks.write(pickle.dumps(task))
            self._tasks.flush()
            self._wait_for_outcome(stop)
            outcome = pickle.load(self._outcomes)  # noqa: S301  our own process has sent it
        except (OSError, EOFError, pickle.UnpicklingError):
            self._process.kill()
            status = self._process.wait()
            raise CompactionFailed(f"the process that compacts has ended with status {status}") from None
        if isinstance(outcome, Failed):
            if outcome.damage is not None:
                raise CorruptLog(*outcome.damage)
            raise CompactionFailed(outcome.why)
        assert isinstance(outcome, Done), outcome
        return outcome

    def _wait_for_outcome(self, stop: Callable[[], bool]) -> None:
        poll = select.poll()
        poll.register(self._outcomes, select.POLLIN)
        while not poll.poll(_LOOK_MS):
            if stop():
                self._process.kill()
                self._process.wait()
                raise CompactionStopped
