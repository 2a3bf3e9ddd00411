"""How busy processes of this machine are, and the machine as a whole, by /proc."""

import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from headrace.client.load.figures import Throughput, Used

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_HEADRACE: Final = b"headrace"
OTHERS: Final = "others"  # what limits a load on a machine that has other things to do
_MUCH: Final = 0.25  # of all cores, for programs that are none of ours
_IDLE: Final = slice(3, 5)  # of the first line of /proc/stat: idle, and waiting for disks


class Look(NamedTuple):
    """What was seen at a moment: ticks of each thread, and of the machine, resting and in all."""

    at_s: float
    threads: dict[tuple[int, str], int]
    resting: int
    total: int


class Meter:
    """Measures from the first look to the last, both while the processes are at work."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = list(pids)
        self._first: Look | None = None
        self._last: Look | None = None

    def look(self) -> None:
        seen = Look(time.monotonic(), _threads(self._pids), *_machine())
        self._last = seen if seen.threads else self._last  # they have ended
        self._first = self._first or self._last

    def used(self, pids: Iterable[int]) -> Used:
        """By these of the processes."""
        wanted = set(pids)
        if self._first is None or self._last is None:
            return Used(cores=0.0, busiest=0.0)
        seconds = max(self._last.at_s - self._first.at_s, 1 / _TICKS)
        before = self._first.threads
        shares = [
            (ticks - before.get(key, 0)) / _TICKS / seconds
            for key, ticks in self._last.threads.items()
            if key[0] in wanted
        ]
        return Used(cores=sum(shares), busiest=max(shares, default=0.0))

    @property
    def machine(self) -> float:
        """The share of all cores that was used, by whomever."""
        if self._first is None or self._last is None:
            return 0.0
        total = self._last.total - self._first.total
        return 1 - (self._last.resting - self._first.resting) / total if total else 0.0


def limited_by(found: Throughput, cores: int) -> Throughput:
    """The same; where the machine is the limit, and others than clients and brokers use it up, those are."""
    ours = found.clients.cores + (0.0 if found.brokers is None else found.brokers.cores)
    theirs = found.machine - ours / cores
    return replace(found, limit=OTHERS) if found.limit == "machine" and theirs > _MUCH else found


def are_here(pids: Iterable[int | None]) -> bool:
    """Whether brokers that say they are these processes run on this machine."""
    return all(pid is not None and _is_ours(pid) for pid in pids)


def _is_ours(pid: int) -> bool:
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
