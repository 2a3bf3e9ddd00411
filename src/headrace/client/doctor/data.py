"""Findings about a broker's log directory and its disk. Pure: facts in, findings out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headrace.client.doctor.diagnosis import Area, Finding, gibibytes, some


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Damage of a file; `last` if it is in the newest segment, whose end a crash may have torn."""

    path: str
    says: str
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDirectory:
    """A broker's log directory."""

    path: str
    broker_id: int | None
    cluster_id: str | None
    held_by: int | None  # the process that holds its lock
    clean: bool  # the last shutdown was clean
    partitions: int
    verified: int  # partitions, of those
    damages: tuple[Damage, ...] = ()
    leftovers: tuple[str, ...] = ()  # files that the next start removes
    strangers: tuple[str, ...] = ()  # directories that are not logs: a broker refuses to start
    unreadable: str = ""  # why the directory could not be read


def examine(directory: BrokerDirectory) -> Iterator[Finding]:
    area = Area(directory.path)
    if directory.unreadable:
        yield area.problem("owner", f"{directory.unreadable}.", "Restore it, or choose another directory.")
        return
    if directory.broker_id is None:
        yield area.ok("owner", "No broker has used the directory yet.")
    else:
        yield area.ok("owner", f"Broker {directory.broker_id} of cluster {directory.cluster_id}.")
    if directory.held_by is not None:
        yield area.ok("in use", f"Process {directory.held_by} uses the directory: its files are not checked.")
    elif directory.clean or not directory.partitions:
        yield area.ok("stopped", "No broker uses the directory, and the last shutdown was clean.")
    else:
        yield area.warning(
            "stopped",
            "The last shutdown was not clean: the next start checks the newest files, which takes a while.",
            "Nothing. Ctrl-C or SIGTERM shuts a broker down cleanly, kill -9 does not.",
        )
    if directory.strangers:
        yield area.problem(
            "strangers",
            f"{some(directory.strangers)} is not the directory of a partition: a broker refuses to start.",
            "Move it away.",
        )
    if directory.held_by is None:
        yield from _files(area, directory)


def _files(area: Area, directory: BrokerDirectory) -> Iterator[Finding]:
    if directory.leftovers:
        yield area.ok("left over", f"{some(directory.leftovers)}: the next start removes these files.")
    torn = [damage for damage in directory.damages if damage.last and not directory.clean]
    broken = [damage for damage in directory.damages if damage not in torn]
    if torn:
        yield area.warning(
            "torn ends",
            f"{some(each.path for each in torn)}: the end is incomplete: the broker stopped during a write.",
            "Nothing: the next start truncates it, and other replicas have the acknowledged records.",
        )
    if broken:
        yield area.problem(
            "damage",
            f"{some(each.path for each in broken)}: {broken[0].says}.",
            "Start the broker: it copies the damaged records from another replica. Without one, restore the "
            "file from a backup.",
        )
    if not directory.damages and directory.verified:
        left = directory.partitions - directory.verified
        rest = f"; {left:,} more were not checked: `headrace log verify` checks them" if left else ""
        yield area.ok("files", f"{directory.verified:,} partitions are undamaged{rest}.")


LEAST_DISK: Final = 1024**3
LEAST_SHARE: Final = 0.05
TIGHT_SHARE: Final = 0.15
SLOW_SYNC_MS: Final = 20.0  # of a worn disk, or a network disk
USELESS_SYNC_MS: Final = 200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The disk of a directory, and how long an fsync of a few bytes takes."""

    path: str
    total_bytes: int
    free_bytes: int
    sync_ms: float | None  # None if it cannot be written
    why: str = ""


def examine_disk(area: Area, disk: Disk) -> Iterator[Finding]:
    """Yield findings about whether the disk suits a broker's logs."""
    if disk.sync_ms is None:
        yield area.problem(
            "disk", f"{disk.path} cannot be written to: {disk.why}.", "Make it writable, or choose another."
        )
        return
    share = disk.free_bytes / disk.total_bytes if disk.total_bytes else 0.0
    yield area.graded(
        "disk",
        f"{gibibytes(disk.free_bytes)} of {gibibytes(disk.total_bytes)} are free for {disk.path}.",
        "Free space, or lower retention.ms or retention.bytes of topics: a broker stops if it is full.",
        problem=disk.free_bytes < LEAST_DISK or share < LEAST_SHARE,
        warning=share < TIGHT_SHARE,
    )
    yield area.graded(
        "fsync",
        f"An fsync takes {disk.sync_ms:.1f} ms.",
        "Use a local SSD: with a slow disk elections and starts are slow, and brokers may time out.",
        problem=disk.sync_ms > USELESS_SYNC_MS,
        warning=disk.sync_ms > SLOW_SYNC_MS,
    )
