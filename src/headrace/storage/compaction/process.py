"""A process that compacts for a broker: it plans nothing and installs nothing, it reads and writes files.

    python -m headrace.storage.compaction.process PARENT      a `Task` on stdin, its outcome on stdout

Python walks half a million records a second, and while a thread does that, every request of the broker waits
for the interpreter lock, up to 5 ms each time. The process ends with the broker: the kernel kills it when the
thread that started it ends, and it stops at the end of its stdin. It leaves `.cleaned` files then, which are
removed when the log is opened or compacted again.
"""

import os
import pickle
import select
import signal
import sys
from typing import BinaryIO, Final

from headrace.storage.compaction.task import perform
from headrace.system.parent_process import end_with

_NICE: Final = 10  # the broker's own requests come first, also those to the disk
_STEPS: Final = 16  # batches between two looks at stdin


class _EndOfInput:
    """Whether stdin has ended, and with it the broker; it is looked at once in a while."""

    def __init__(self, descriptor: int) -> None:
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self._steps = 0

    def __call__(self) -> bool:
        self._steps += 1
        # No task is sent before the last one is done, so only the end of stdin makes it readable.
        return self._steps % _STEPS == 0 and bool(self._poll.poll(0))


def serve(tasks: BinaryIO, outcomes: BinaryIO) -> None:
    stop = _EndOfInput(tasks.fileno())
    while True:
        try:
            task = pickle.load(tasks)  # noqa: S301  the broker has sent it
        except EOFError:
            return
        outcomes.write(pickle.dumps(perform(task, stop)))
        outcomes.flush()


def main() -> None:
    end_with(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the broker, which ends this process
    os.nice(_NICE)
    with os.fdopen(0, "rb", buffering=0) as tasks, os.fdopen(1, "wb") as outcomes:
        serve(tasks, outcomes)


if __name__ == "__main__":
    main()
