"""The logs of stopped brokers, batch by batch: replicas of a partition are equal, byte for byte."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from headrace.storage.checks.verify import verify
from headrace.storage.config import LogConfig
from headrace.storage.files import names_in, segment_base_offsets
from headrace.storage.segment import Segment


class Batch(NamedTuple):
    base_offset: int
    next_offset: int
    leader_epoch: int
    data: bytes


def batches(directory: Path) -> Iterator[Batch]:
    """Every batch of a partition's directory, checksums checked."""
    for base_offset in segment_base_offsets(names_in(directory)):
        segment = Segment.open(directory, base_offset, LogConfig())
        with segment.private_scanner() as scanner:
            for position, header in scanner.checked_headers():
                data = bytes(scanner.batch(position, header))
                yield Batch(header.base_offset, header.next_offset, header.leader_epoch, data)


def differences(directories: Collection[Path]) -> list[str]:
    """How the logs in these log directories differ, and what is wrong with their files."""
    names = sorted({each.name for directory in directories for each in directory.iterdir() if each.is_dir()})
    found = []
    for name in names:
        replicas = [directory / name for directory in directories if (directory / name).is_dir()]
        for replica in replicas:
            found += [problem for report in verify(replica) for problem in report.problems]
        found += _compare(name, replicas)
    return found


def misplaced(directories: Mapping[int, Path], expected: Mapping[str, Collection[int]]) -> Iterator[str]:
    """Replicas that a broker should have and has not, or has and should not; `expected` are its brokers.

    A replica without records has no directory.
    """
    for broker_id, directory in directories.items():
        there = {each.name for each in directory.iterdir() if each.is_dir()}
        wanted = {name for name, brokers in expected.items() if broker_id in brokers}
        missing = [name for name in sorted(wanted - there) if _has_records(name, directories.values())]
        yield from (f"MISSING: broker {broker_id} has no {name}" for name in missing)
        yield from (f"STRAY: broker {broker_id} still has {name}" for name in sorted(there - wanted))


def _has_records(name: str, directories: Iterable[Path]) -> bool:
    replicas = [each / name for each in directories if (each / name).is_dir()]
    return any(True for replica in replicas for _ in batches(replica))


def _compare(name: str, replicas: Collection[Path]) -> Iterator[str]:
    first, *others = replicas
    expected = list(batches(first))
    for other in others:
        found = list(batches(other))
        if found == expected:
            continue
        pairs = zip(expected, found, strict=False)
        at = next((number for number, (a, b) in enumerate(pairs) if a != b), min(len(expected), len(found)))
        yield (
            f"DIFFERENT: {name} of {first.parent.name} and of {other.parent.name} from batch {at} on: "
            f"{_place(expected, at)} and {_place(found, at)}"
        )


def _place(found: list[Batch], number: int) -> str:
    if number >= len(found):
        return f"ends at offset {found[-1].next_offset if found else 0}"
    batch = found[number]
    return f"has {batch.base_offset}-{batch.next_offset - 1} of epoch {batch.leader_epoch}"
