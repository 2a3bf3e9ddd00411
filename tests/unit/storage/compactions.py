"""A log to compact, and the steps of its compaction."""

from headrace.storage.compaction.cleaner import Compacted, Plan, plan_compaction, run_compaction
from headrace.storage.log import Log
from support.logs import put
from support.records import TIMESTAMP, make_marker

Files = dict[str, bytes]


def fill(log: Log) -> None:
    """Three closed segments over keys a to c, a transaction that was aborted, and an active segment."""
    for number in range(3):
        put(log, (b"a", b"a%d" % number), (b"b", b"b%d" % number))
        put(
            log, (b"c", b"aborted"), transactional=True, producer_id=7, producer_epoch=0, base_sequence=number
        )
        put(log, (b"c", b"c%d" % number))
        log.append_internal(make_marker(7, commit=False), leader_epoch=0)
        log.roll()
    put(log, (b"a", b"active"))


def planned(log: Log, **changes: int) -> Plan:
    plan = plan_compaction(log, **{"first_dirty_offset": 0, "up_to_offset": log.log_end_offset, **changes})
    assert plan is not None
    return plan


def ran(log: Log) -> Compacted:
    return run_compaction(planned(log), max_keys=1000, stop=lambda: False)


def files_of(log: Log) -> Files:
    return {path.name: path.read_bytes() for path in sorted(log.directory.iterdir())}


def segment_of(log: Log, *, size: int, timestamp: int = TIMESTAMP) -> None:
    """A closed segment of roughly `size` bytes."""
    put(log, (b"k", bytes(size)), timestamp=timestamp)
    log.roll()
