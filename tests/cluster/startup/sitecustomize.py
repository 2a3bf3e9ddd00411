"""Lets a test block the main thread of a process, where its event loop runs, and no other thread.

Python imports this at the start of every process that has this directory on its PYTHONPATH. SIGUSR1 blocks
until the file named by TEST_RELEASE_FILE exists.
"""

import os
import signal
import time
from pathlib import Path


def _block(_signal: int, _frame: object) -> None:
    release = Path(os.environ["TEST_RELEASE_FILE"])
    while not release.exists():
        time.sleep(0.05)


if "TEST_RELEASE_FILE" in os.environ:
    signal.signal(signal.SIGUSR1, _block)
