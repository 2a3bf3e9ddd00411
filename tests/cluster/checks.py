"""What has to be true once a cluster is well again: the ledger against the records that there are. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from cluster.ledger import Ledger, Record, Slot

SHOWN = 5  # of each kind of problem


def problems(ledger: Ledger, log: Mapping[Slot, Record]) -> list[str]:
    """Everything that is wrong, in sentences; `log` is the topic as it was read at the end, in order."""
    checks = (lost(ledger, log), unread(ledger, log), twice(log), out_of_order(log), unknown(ledger, log))
    found = [line for check in checks for line in _first(check)]
    return [*found, *_first(iter(ledger.problems)), *_first(f"not written: {each}" for each in ledger.failed)]


def lost(ledger: Ledger, log: Mapping[Slot, Record]) -> Iterator[str]:
    """Every acknowledged record is at its place."""
    for slot, record in ledger.acknowledged:
        if log.get(slot) != record:
            yield f"LOST: {record} was acknowledged at {slot}, where there is {log.get(slot)}"
    there = set(log.values())
    for record in ledger.somewhere:
        if record not in there:
            yield f"LOST: {record} was acknowledged and is nowhere"


def unread(ledger: Ledger, log: Mapping[Slot, Record]) -> Iterator[str]:
    """Nobody has read what is not there, and the group has read everything that is."""
    for slot, record in ledger.processed.items():
        if log.get(slot) != record:
            yield f"UNREAL: {record} was read at {slot}, where there is {log.get(slot)}"
    for slot, record in log.items():
        if slot not in ledger.processed:
            yield f"UNREAD: the group has not read {record} at {slot}"


def twice(log: Mapping[Slot, Record]) -> Iterator[str]:
    """A record of an idempotent producer is there once."""
    seen: dict[Record, Slot] = {}
    for slot, record in log.items():
        if record in seen:
            yield f"TWICE: {record} is at {seen[record]} and at {slot}"
        seen[record] = slot


def out_of_order(log: Mapping[Slot, Record]) -> Iterator[str]:
    """The records of a key are in one partition, in the order in which they were sent."""
    latest: dict[str, tuple[int, int]] = {}
    for slot, record in sorted(log.items()):
        partition, number = latest.get(record.key, (slot.partition, -1))
        if partition != slot.partition or number >= record.number:
            yield f"OUT OF ORDER: {record} at {slot} comes after number {number} in partition {partition}"
        latest[record.key] = slot.partition, record.number


def unknown(ledger: Ledger, log: Mapping[Slot, Record]) -> Iterator[str]:
    """Nothing is there that was not sent; partitions have no gaps."""
    for slot, record in log.items():
        if record.number >= ledger.sent.get(record.key, 0):
            yield f"UNKNOWN: nobody sent {record} at {slot}"
    offsets: dict[int, list[int]] = defaultdict(list)
    for slot in log:
        offsets[slot.partition].append(slot.offset)
    for partition, found in offsets.items():
        if sorted(found) != list(range(len(found))):
            yield f"GAPS: partition {partition} has {len(found)} records up to offset {max(found)}"


def _first(found: Iterator[str]) -> list[str]:
    lines = list(found)
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"and {len(lines) - SHOWN} more like it"]
