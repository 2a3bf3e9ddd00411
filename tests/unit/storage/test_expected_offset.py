"""Compare and append: a batch that names the offset it is to get."""

from collections.abc import Callable

import pytest

from headrace.protocol.batch import build_batch
from headrace.protocol.errors import InvalidRecord
from headrace.protocol.varint import encode_varint
from headrace.storage.log import Appended, Log
from support.logs import read_all
from support.records import make_batch

OpenLog = Callable[..., Log]


@pytest.fixture
def log(open_log: OpenLog) -> Log:
    return open_log(append_expected_offset=True)


def test_whoever_has_read_everything_may_write(log: Log) -> None:
    first = log.append(make_batch(2, base_offset=0), leader_epoch=0)
    second = log.append(make_batch(1, base_offset=2), leader_epoch=0)

    assert (first, second) == (Appended(0, 1, -1), Appended(2, 2, -1))


@pytest.mark.parametrize("expected", [0, 1, 3, -1])
def test_whoever_has_not_is_refused_and_told_where_the_log_is(log: Log, expected: int) -> None:
    log.append(make_batch(2, base_offset=0), leader_epoch=0)
    before = read_all(log)

    with pytest.raises(InvalidRecord, match=rf"expects offset {expected}, the log end offset is 2"):
        log.append(make_batch(1, base_offset=expected), leader_epoch=0)

    assert read_all(log) == before


def test_other_topics_take_batches_from_offset_0_only(open_log: OpenLog) -> None:
    log = open_log()
    log.append(make_batch(2), leader_epoch=0)

    with pytest.raises(InvalidRecord, match="starts at offset 0"):
        log.append(make_batch(1, base_offset=2), leader_epoch=0)


def test_records_that_nobody_could_read_are_refused(log: Log) -> None:
    """One broken record would stop everybody who decides by what such a topic says."""
    record = b"\0" + encode_varint(0) + encode_varint(0) + encode_varint(1) + b"k" + encode_varint(1) + b"v"
    body = encode_varint(len(record)) + record  # that it has no headers is not said
    batch = build_batch(
        body, base_offset=0, last_offset_delta=0, records_count=1, base_timestamp=1, max_timestamp=1
    )

    with pytest.raises(InvalidRecord):
        log.append(batch, leader_epoch=0)
    assert read_all(log) == []
