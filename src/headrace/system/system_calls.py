"""System calls that Linux has, and what is used instead on macOS and other systems."""

import contextlib
import ctypes
import fcntl
import os
import sys
from pathlib import Path
from typing import Final

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_BOOT_ID_ON_MACOS: Final = b"kern.bootsessionuuid"


def sync_data(descriptor: int) -> None:
    """Make what was written to an open file durable, and its size."""
    if sys.platform == "linux":
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)
        if sys.platform == "darwin":
            with contextlib.suppress(OSError):  # some file systems refuse it
                fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # fsync leaves the data in the cache of the drive


def usable_cpus() -> int:
    """Return how many CPUs this process may use."""
    cpus = os.cpu_count() or 1
    if sys.platform == "linux":
        cpus = len(os.sched_getaffinity(0))
    return cpus


def boot_id() -> str | None:
    """Return an id that every boot of the machine changes; None if the system does not tell it."""
    found: str | None = None
    if sys.platform == "darwin":
        value, size = ctypes.create_string_buffer(64), ctypes.c_size_t(64)
        if ctypes.CDLL(None).sysctlbyname(_BOOT_ID_ON_MACOS, value, ctypes.byref(size), None, 0) == 0:
            found = value.value.decode()
    else:
        with contextlib.suppress(OSError):
            found = _BOOT_ID.read_text().strip()
    return found
