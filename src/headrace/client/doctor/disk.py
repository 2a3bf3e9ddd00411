"""Is there room on a disk, and how fast is it for sure? Rules only: facts in, findings out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headrace.client.doctor.diagnosis import Area, Finding, gibibytes

LEAST_DISK: Final = 1024**3
LEAST_SHARE: Final = 0.05
TIGHT_SHARE: Final = 0.15
SLOW_SYNC_MS: Final = 20.0  # of a worn disk, or one over a network
USELESS_SYNC_MS: Final = 200.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The disk that a directory is on, and how long it takes to have a little written for sure."""

    path: str
    total_bytes: int
    free_bytes: int
    sync_ms: float | None  # None: it cannot be written to
    why: str = ""


def examine_disk(area: Area, disk: Disk) -> Iterator[Finding]:
    """Whether it is fit for a broker's logs."""
    if disk.sync_ms is None:
        yield area.problem(
            "disk", f"{disk.path} cannot be written to: {disk.why}.", "Make it writable, or choose another."
        )
        return
    share = disk.free_bytes / disk.total_bytes if disk.total_bytes else 0.0
    said = f"{gibibytes(disk.free_bytes)} of {gibibytes(disk.total_bytes)} are free for {disk.path}"
    do = "Make room, or lower retention.ms or retention.bytes of topics: a broker stops when it is full."
    if disk.free_bytes < LEAST_DISK or share < LEAST_SHARE:
        yield area.problem("disk", f"Only {said}.", do)
    elif share < TIGHT_SHARE:
        yield area.warning("disk", f"{said}.", do)
    else:
        yield area.ok("disk", f"{said}.")
    yield _sync(area, disk.sync_ms)


def _sync(area: Area, took_ms: float) -> Finding:
    said = f"A write is on the disk for sure after {took_ms:.1f} ms"
    do = "Use a local SSD; a disk over a network makes elections and starts slow."
    if took_ms > USELESS_SYNC_MS:
        return area.problem("fsync", f"{said}: brokers would time out.", do)
    if took_ms > SLOW_SYNC_MS:
        return area.warning("fsync", f"{said}, which is slow.", do)
    return area.ok("fsync", f"{said}.")
