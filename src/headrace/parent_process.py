"""Ends a process together with the process that has started it."""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def end_with(parent: int) -> None:
    """Have the kernel kill this process, or the program that it executes, as soon as its parent is gone.

    `parent` is the process id of the parent; exit if it is gone already. Linux sends the signal when the
    thread that started this process ends. Other systems have no such signal, and only the check is made.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:  # the parent ended before that
        sys.exit(1)
