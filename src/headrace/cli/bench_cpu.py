"""Measure from /proc how busy processes of this machine are, and the machine as a whole."""

import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from headrace.client.load.figures import Throughput, Used

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_HEADRACE: Final = b"headrace"
OTHERS: Final = "others"  # the limit of a load on a machine that is busy with other programs
_MUCH: Final = 0.25  # of all cores, used by other programs
_IDLE: Final = slice(3, 5)  # of the first line of /proc/stat: idle, and waiting for disks


class Sample(NamedTuple):
    """CPU ticks at a moment: of each thread, and of the machine, idle and in total."""

    at_s: float
    threads: dict[tuple[int, str], int]
    idle: int
    total: int


class Meter:
    """Measures from the first sample to the last; both are taken while the processes run."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = list(pids)
        self._first: Sample | None = None
        self._last: Sample | None = None

    def sample(self) -> None:
        seen = Sample(time.monotonic(), _threads(self._pids), *_machine())
        self._last = seen if seen.threads else self._last  # without threads the processes have ended
        self._first = self._first or self._last

    def used(self, pids: Iterable[int]) -> Used:
        """Return the CPU time that these processes have used."""
        chosen = set(pids)
        if self._first is None or self._last is None:
            return Used(cores=0.0, busiest=0.0)
        seconds = max(self._last.at_s - self._first.at_s, 1 / _TICKS)
        before = self._first.threads
        shares = [
            (ticks - before.get(key, 0)) / _TICKS / seconds
            for key, ticks in self._last.threads.items()
            if key[0] in chosen
        ]
        return Used(cores=sum(shares), busiest=max(shares, default=0.0))

    @property
    def machine(self) -> float:
        """The share of all cores that was used by any process."""
        if self._first is None or self._last is None:
            return 0.0
        total = self._last.total - self._first.total
        return 1 - (self._last.idle - self._first.idle) / total if total else 0.0


def limited_by(found: Throughput, cores: int) -> Throughput:
    """Return `found`, with the limit OTHERS if the machine is the limit and other programs use its cores."""
    ours = found.clients.cores + (0.0 if found.brokers is None else found.brokers.cores)
    theirs = found.machine - ours / cores
    return replace(found, limit=OTHERS) if found.limit == "machine" and theirs > _MUCH else found


def are_here(pids: Iterable[int | None]) -> bool:
    """Return whether all these process ids, which brokers report, are brokers of this machine."""
    return all(pid is not None and _is_headrace(pid) for pid in pids)


def _is_headrace(pid: int) -> bool:
    try:
        return _HEADRACE in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _threads(pids: Iterable[int]) -> dict[tuple[int, str], int]:
    found = {}
    for pid in pids:
        for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # a thread that has just ended
            found[pid, stat.parent.name] = int(fields[11]) + int(fields[12])  # in user mode, in the kernel
    return found


def _machine() -> tuple[int, int]:
    try:
        with Path("/proc/stat").open() as file:
            ticks = [int(each) for each in file.readline().split()[1:9]]
    except OSError:
        return 0, 0
    return sum(ticks[_IDLE]), sum(ticks)
