"""Ends a process together with the process that has started it."""

import ctypes
import os
import signal
import sys
import threading
from typing import Final

_LOOK_EVERY_S: Final = 0.5
_PR_SET_PDEATHSIG: Final = 1


def end_with(parent: int) -> None:
    """Have the kernel kill this process, or the program that it executes, as soon as its parent is gone.

    `parent` is the process id of the parent; exit if it is gone already. Linux sends the signal when the
    thread that started this process ends. Other systems have no such signal: a thread looks for the parent,
    and a program that this process executes outlives it.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
    else:
        from headrace.system.background import BackgroundThread  # noqa: PLC0415  Linux does without

        ending = threading.Event()
        BackgroundThread(_watch, name="headrace-parent", stop=ending.set, args=(parent, ending)).start()
    if os.getppid() != parent:  # the parent ended before that
        sys.exit(1)


def _watch(parent: int, ending: threading.Event) -> None:
    while not ending.wait(_LOOK_EVERY_S):
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
