"""What the kernel says about a process and its children: CPU time and memory, from /proc."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_UTIME, _STIME = 11, 12  # fields of /proc/PID/stat, counted after the command's closing parenthesis


def tree(pid: int) -> Iterator[int]:
    """The process and all that descend from it."""
    yield pid
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from tree(int(child))
    except FileNotFoundError:
        return  # it has ended


def cpu_seconds(pid: int) -> float:
    """User and system time of the whole tree so far, in steps of a hundredth of a second."""
    return sum(_ticks(each) for each in tree(pid)) / _TICKS_PER_SECOND


def resident_bytes(pid: int) -> int:
    return sum(_resident_kb(each) for each in tree(pid)) * 1024


def descriptors(pid: int) -> int:
    """How many files the process and its children have open."""
    return sum(len(list(Path(f"/proc/{each}/fd").iterdir())) for each in tree(pid))


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0
    return int(fields[_UTIME]) + int(fields[_STIME])


def _resident_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


def warn_if_busy() -> None:
    busy, cores = os.getloadavg()[0], os.cpu_count() or 1
    if busy > cores / 2:
        print(
            f"The load average is {busy:.1f} on {cores} cores: beside other work, Kafka's many threads get"
            " more of the machine than our one. Trust the CPU figures, not the throughput.\n"
        )
