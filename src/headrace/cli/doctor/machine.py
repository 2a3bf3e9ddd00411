"""Read the facts about this machine for the doctor."""

import ctypes
import os
import resource
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from headrace.client.doctor.data import Disk
from headrace.client.doctor.machine import Machine, Port
from headrace.system.system_calls import usable_cpus

PARTS: Final = ("pyspark", "deltalake", "pyiceberg")
_SYNCS: Final = 15
_BLOCK: Final = bytes(4096)
_UNSYNCHRONISED: Final = 5  # TIME_ERROR of adjtimex(2)
_TIMEX_BYTES: Final = 512  # more than struct timex has


def read_machine(ports: Mapping[int, str], data: Path | None) -> Machine:
    """Return the facts; `ports` says what happens if they are taken, `data` is the directory of the logs."""
    memory = dict(_meminfo())
    _, open_files = resource.getrlimit(resource.RLIMIT_NOFILE)  # a broker raises its soft limit to this
    return Machine(
        python=sys.version_info[:3],
        cores=usable_cpus(),
        open_files=None if open_files == resource.RLIM_INFINITY else open_files,
        memory_bytes=memory.get("MemTotal"),
        available_bytes=memory.get("MemAvailable"),
        swap_bytes=memory.get("SwapTotal"),
        swappiness=_number(Path("/proc/sys/vm/swappiness")),
        huge_pages=_huge_pages(),
        clock_synchronised=_clock(),
        java=_java(),
        parts={name: _version(name) for name in PARTS},
        ports=tuple(
            Port(number=port, free=_free(port), otherwise=otherwise) for port, otherwise in ports.items()
        ),
        disk=None if data is None else read_disk(data),
    )


def read_disk(path: Path) -> Disk:
    """Return the disk of `path`, which need not exist yet, and the median time of a write with fsync."""
    existing = next(each for each in (path, *path.absolute().parents) if each.exists())
    usage = os.statvfs(existing)
    sync_ms, why, took_ms = None, "", []
    try:
        with tempfile.TemporaryFile(dir=existing, prefix="headrace-doctor-") as file:
            for _ in range(_SYNCS):
                began = time.perf_counter()
                file.write(_BLOCK)
                file.flush()
                os.fsync(file.fileno())
                took_ms.append((time.perf_counter() - began) * 1000)
        sync_ms = statistics.median(took_ms)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
    return Disk(
        path=str(path),
        total_bytes=usage.f_blocks * usage.f_frsize,
        free_bytes=usage.f_bavail * usage.f_frsize,
        sync_ms=sync_ms,
        why=why,
    )


def _meminfo() -> Iterator[tuple[str, int]]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        name, _, rest = line.partition(":")
        yield name, int(rest.split()[0]) * 1024


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _huge_pages() -> str | None:
    """Return the word in brackets, the active mode."""
    try:
        words = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text().split()
    except OSError:
        return None
    return next((word.strip("[]") for word in words if word.startswith("[")), None)


def _clock() -> bool | None:
    """Return whether the kernel's clock is synchronised, for example by NTP."""
    adjtimex = getattr(ctypes.CDLL(None), "adjtimex", None)
    if adjtimex is None:
        return None
    state = adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    return None if state < 0 else state != _UNSYNCHRONISED


def _java() -> str | None:
    from headrace.system.java import NoJava, find_java  # noqa: PLC0415

    try:
        return str(find_java("ZooKeeper"))
    except NoJava:
        return None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _free(port: int) -> bool:
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False
