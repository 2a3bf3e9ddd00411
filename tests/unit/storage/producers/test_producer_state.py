import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.batch import BatchHeader, read_batch
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import Offset, ProducerId
from headrace.storage.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from headrace.storage.producers.state import AppendedBatch, CompletedTxn, EndMarker, ProducerState
from support.records import TIMESTAMP, make_batch, make_marker

MAX_SEQUENCE = 2**31 - 1
PRODUCER = ProducerId(7)


def batch(
    first: int = 0, count: int = 1, *, epoch: int = 0, offset: int = 0, transactional: bool = False
) -> BatchHeader:
    return read_batch(
        make_batch(
            count,
            producer_id=7,
            producer_epoch=epoch,
            base_sequence=first,
            base_offset=offset,
            transactional=transactional,
        )
    )


def marker(*, epoch: int = 0, offset: int = 0) -> BatchHeader:
    return read_batch(make_marker(7, commit=True, producer_epoch=epoch, base_offset=offset))


def producer(*batches: BatchHeader) -> ProducerState:
    state = ProducerState(PRODUCER)
    for header in batches:
        state.record(header)
    return state


COMMIT = EndMarker(commit=True, coordinator_epoch=3)
ABORT = EndMarker(commit=False, coordinator_epoch=3)


def test_a_retry_is_answered_with_the_offsets_of_the_first_write() -> None:
    state = producer(batch(0, 3, offset=100), batch(3, 2, offset=103))

    assert state.check(batch(0, 3)) == AppendedBatch(0, 2, 100, 102, TIMESTAMP)
    assert state.check(batch(3, 2)) == AppendedBatch(3, 4, 103, 104, TIMESTAMP)


def test_the_last_five_batches_are_remembered_and_no_more() -> None:
    state = producer(*(batch(number, offset=number) for number in range(6)))

    for number in range(1, 6):
        written = state.check(batch(number))
        assert written is not None
        assert written.base_offset == number
    with pytest.raises(OutOfOrderSequence, match="sent sequence 0, expected 6"):
        state.check(batch(0))


def test_the_next_sequence_is_new() -> None:
    assert producer(batch(0, 3)).check(batch(3)) is None


@pytest.mark.parametrize(("first", "count"), [(4, 1), (2, 1), (0, 2), (0, 4), (1, 2), (2, 2)])
def test_a_gap_or_an_overlap_is_refused(first: int, count: int) -> None:
    with pytest.raises(OutOfOrderSequence) as refusal:
        producer(batch(0, 3)).check(batch(first, count))

    assert refusal.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (refusal.value.expected, refusal.value.got) == (3, first)


def test_an_older_epoch_is_refused() -> None:
    with pytest.raises(InvalidProducerEpoch, match="epoch 1 is fenced, current is 2") as refusal:
        producer(batch(epoch=2)).check(batch(1, epoch=1))

    assert refusal.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_starts_at_sequence_zero() -> None:
    state = producer(batch(0, 3))

    assert state.check(batch(0, epoch=1)) is None
    with pytest.raises(OutOfOrderSequence):
        state.check(batch(3, epoch=1))


def test_a_new_epoch_does_not_answer_for_the_old_one() -> None:
    state = producer(batch(0, 3), batch(0, 2, epoch=1, offset=3))

    assert state.check(batch(0, 2, epoch=1)) is not None
    with pytest.raises(OutOfOrderSequence):
        state.check(batch(0, 3, epoch=1))


@pytest.mark.parametrize("first", [0, 1, 500, MAX_SEQUENCE])
def test_a_producer_nobody_remembers_may_start_anywhere(first: int) -> None:
    assert producer().check(batch(first)) is None


def test_sequences_start_over_after_the_largest() -> None:
    state = producer(batch(MAX_SEQUENCE - 1, 2))
    assert state.check(batch(0)) is None
    with pytest.raises(OutOfOrderSequence, match="expected 0"):
        state.check(batch(1))


def test_a_batch_may_reach_over_the_largest_sequence_and_be_retried() -> None:
    state = producer(batch(MAX_SEQUENCE - 1, 4, offset=50))

    assert state.check(batch(MAX_SEQUENCE - 1, 4)) == AppendedBatch(MAX_SEQUENCE - 1, 1, 50, 53, TIMESTAMP)
    assert state.check(batch(2)) is None


def test_a_transaction_is_open_from_its_first_record_to_its_marker() -> None:
    state = producer(batch(0, offset=10, transactional=True), batch(1, offset=15, transactional=True))
    assert state.txn_first_offset == 10

    assert state.end_transaction(marker(offset=20), COMMIT) == CompletedTxn(
        PRODUCER, Offset(10), Offset(20), aborted=False
    )
    assert state.txn_first_offset is None


def test_an_aborted_transaction_says_so() -> None:
    state = producer(batch(0, offset=10, transactional=True))

    assert state.end_transaction(marker(offset=20), ABORT) == CompletedTxn(
        PRODUCER, Offset(10), Offset(20), aborted=True
    )


def test_a_marker_without_a_transaction_ends_nothing() -> None:
    assert producer(batch()).end_transaction(marker(offset=20), ABORT) is None


def test_records_outside_of_an_open_transaction_are_refused() -> None:
    with pytest.raises(InvalidTxnState, match="open since 10") as refusal:
        producer(batch(0, offset=10, transactional=True)).check(batch(1))

    assert refusal.value.code is ErrorCode.INVALID_TXN_STATE


def test_sequences_go_on_after_a_marker_of_the_same_epoch() -> None:
    state = producer(batch(0, 3, transactional=True))
    state.end_transaction(marker(), COMMIT)

    assert state.check(batch(3)) is None
    assert state.check(batch(0, 3)) is not None


def test_sequences_start_over_after_a_marker_of_a_new_epoch() -> None:
    state = producer(batch(0, 3, transactional=True))
    state.end_transaction(marker(epoch=1), ABORT)

    assert state.check(batch(0, epoch=1)) is None
    with pytest.raises(OutOfOrderSequence, match="expected 0"):
        state.check(batch(3, epoch=1))
    with pytest.raises(InvalidProducerEpoch):
        state.check(batch(3))


def test_a_marker_of_an_older_producer_epoch_is_refused() -> None:
    with pytest.raises(InvalidProducerEpoch):
        producer(batch(epoch=2)).check_marker(marker(epoch=1), COMMIT, 0)


def test_a_marker_of_a_replaced_coordinator_is_refused() -> None:
    state = producer(batch(transactional=True))
    state.end_transaction(marker(), COMMIT)

    state.check_marker(marker(), COMMIT, 0)
    with pytest.raises(TransactionCoordinatorFenced, match="epoch 2 is fenced, current is 3") as refusal:
        state.check_marker(marker(), EndMarker(commit=True, coordinator_epoch=2), 0)
    assert refusal.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


@given(
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=12),
    first=st.sampled_from([0, MAX_SEQUENCE - 5]),
    choices=st.lists(st.integers(0, 30), max_size=40),
)
def test_any_mix_of_new_batches_and_retries_writes_each_sequence_once(
    counts: list[int], first: int, choices: list[int]
) -> None:
    """A client with five requests in flight sends its batches in order and repeats any of those five."""
    starts = [first]
    for count in counts:
        starts.append((starts[-1] + count) % 2**31)
    state = ProducerState(PRODUCER)
    log: list[int] = []
    written: list[int] = []  # base offset by batch
    for choice in choices:
        oldest = max(0, len(written) - 5)
        number = min(oldest + choice % (len(written) - oldest + 1), len(counts) - 1)
        header = batch(starts[number], counts[number], offset=len(log))
        earlier = state.check(header)
        if number < len(written):
            assert earlier is not None
            assert earlier.base_offset == written[number]
        else:
            assert earlier is None
            state.record(header)
            written.append(len(log))
            log += [(starts[number] + delta) % 2**31 for delta in range(counts[number])]

    assert log == [(first + number) % 2**31 for number in range(len(log))]
