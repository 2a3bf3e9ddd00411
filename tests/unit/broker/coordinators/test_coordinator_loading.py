import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.coordinators.loading import Loader, batches, load
from headrace.coordinators.group.coordinator import GroupCoordinator
from headrace.coordinators.group.limits import GroupLimits
from headrace.coordinators.group.offsets import Committed, offset_record, offset_tombstone
from headrace.coordinators.group.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    encode_record,
)
from headrace.protocol.control_records import (
    ControlRecordType,
    EndTxnMarker,
    encode_control_key,
    encode_end_txn_marker,
)
from headrace.protocol.errors import ProtocolError
from headrace.protocol.records import Record, encode_batch
from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from support.logs import open_test_log

NOW_MS = 1_700_000_000_000
SMALL_SEGMENTS = LogConfig(segment_bytes=64 * 1024)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    opened = open_test_log(tmp_path / "__consumer_offsets-0", SMALL_SEGMENTS)
    yield opened
    opened.close()


def committed(group: str, partition: int, offset: int) -> GroupRecord:
    return offset_record(group, "orders", partition, Committed(offset, -1, "", NOW_MS))


def generation(group: str, number: int) -> GroupRecord:
    value = GroupMetadataValue(
        protocol_type="consumer", generation=number, protocol=None, leader=None, members=()
    )
    return GroupRecord(GroupMetadataKey(group=group), value)


def append(log: Log, *records: GroupRecord, producer_id: int = -1, sequence: int = -1) -> None:
    encoded = [Record(*encode_record(record), timestamp=NOW_MS) for record in records]
    transactional = producer_id >= 0
    batch = encode_batch(
        encoded,
        producer_id=producer_id,
        producer_epoch=0 if transactional else -1,
        base_sequence=sequence,
        transactional=transactional,
    )
    log.append_internal(batch, leader_epoch=0)


def end_transaction(log: Log, producer_id: int, kind: ControlRecordType) -> None:
    value = encode_end_txn_marker(EndTxnMarker(coordinator_epoch=0))
    marker = Record(encode_control_key(kind), value, timestamp=NOW_MS)
    batch = encode_batch(
        [marker], producer_id=producer_id, producer_epoch=0, transactional=True, control=True
    )
    log.append_internal(batch, leader_epoch=0)


def loaded(log: Log) -> GroupCoordinator:
    coordinator = GroupCoordinator(GroupLimits(), lambda: "id")
    asyncio.run(load(log, coordinator))
    return coordinator


def offsets(coordinator: GroupCoordinator, group: str) -> dict[int, int]:
    return {partition: each.offset for (_, partition), each in coordinator.offsets.of(group).items()}


def test_the_last_commit_of_each_partition_counts(log: Log) -> None:
    for offset in range(300):  # several segments, many slices
        append(log, *(committed("g", partition, offset + partition) for partition in range(20)))

    assert offsets(loaded(log), "g") == {partition: 299 + partition for partition in range(20)}


def test_every_record_is_counted(log: Log) -> None:
    append(log, committed("g", 0, 1), committed("g", 0, 2))
    append(log, generation("g", 1))

    assert asyncio.run(load(log, GroupCoordinator(GroupLimits(), lambda: "id"))) == 3


def test_a_commit_that_was_deleted_is_gone_and_one_after_that_counts(log: Log) -> None:
    append(log, committed("g", 0, 5), committed("g", 1, 6))
    append(log, offset_tombstone("g", "orders", 0), offset_tombstone("g", "orders", 1))
    append(log, committed("g", 1, 7))

    assert offsets(loaded(log), "g") == {1: 7}


def test_a_group_that_is_gone_leaves_the_offsets_that_were_committed_after_it(log: Log) -> None:
    append(log, generation("kept", 1), generation("gone", 1))
    append(log, GroupRecord(GroupMetadataKey(group="kept"), None))
    append(log, GroupRecord(GroupMetadataKey(group="gone"), None))
    append(log, committed("kept", 0, 3))

    coordinator = loaded(log)

    assert list(coordinator.groups) == ["kept"]
    assert offsets(coordinator, "kept") == {0: 3}


def test_offsets_of_a_transaction_count_from_its_end_on_if_it_was_committed(log: Log) -> None:
    append(log, committed("g", 0, 10), producer_id=1, sequence=0)
    append(log, committed("g", 1, 20), producer_id=2, sequence=0)
    append(log, committed("g", 2, 30), producer_id=3, sequence=0)
    append(log, committed("g", 0, 9))
    end_transaction(log, 1, ControlRecordType.COMMIT)
    end_transaction(log, 2, ControlRecordType.ABORT)

    assert offsets(loaded(log), "g") == {0: 10}


def test_an_offset_that_was_deleted_is_not_committed_by_a_transaction_later(log: Log) -> None:
    append(log, committed("g", 0, 10), committed("g", 1, 11), producer_id=1, sequence=0)
    append(log, committed("g", 0, 20), producer_id=2, sequence=0)
    append(log, offset_tombstone("g", "orders", 0))
    append(log, committed("g", 2, 21), committed("g", 1, 22), producer_id=2, sequence=1)
    end_transaction(log, 1, ControlRecordType.COMMIT)
    append(log, offset_tombstone("g", "orders", 1))
    end_transaction(log, 2, ControlRecordType.COMMIT)

    assert offsets(loaded(log), "g") == {2: 21}


def test_a_tombstone_looks_only_at_transactions_that_have_its_key(log: Log) -> None:
    """Loading costs what changes: not the number of tombstones times that of open transactions."""
    for producer_id in range(100):
        append(log, committed("open", producer_id, 1), producer_id=producer_id, sequence=0)
    append(log, *(offset_tombstone("gone", "orders", partition) for partition in range(100)))
    looked_at: list[int] = []

    class Counted(dict[int, Any]):
        def __getitem__(self, producer_id: int) -> Any:
            looked_at.append(producer_id)
            return super().__getitem__(producer_id)

        def values(self) -> Any:
            looked_at.extend(self)
            return super().values()

    loader = Loader(GroupCoordinator(GroupLimits(), lambda: "id"))
    loader._open = Counted()
    for header, batch in batches(log.read(0, 1_000_000)):
        loader.take(header, batch)

    assert len(loader._open) == 100
    assert looked_at == []


def test_what_is_no_record_of_a_group_is_not_passed_over(log: Log) -> None:
    log.append_internal(encode_batch([Record(None, b"what is this", timestamp=NOW_MS)]), leader_epoch=0)

    with pytest.raises(ProtocolError, match="no key"):
        loaded(log)
