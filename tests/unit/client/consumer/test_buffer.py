"""What was handed out, what is in work, and what is put aside."""

from itertools import islice

from confluent_kafka import Message

from headrace.client.consumer.buffer import FIRST, LARGEST, Buffer, Pace
from headrace.protocol.ids import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def record(place: TopicPartition, offset: int) -> Message:
    return Message(topic=place.topic, partition=place.partition, offset=offset, value=b"v")


def test_the_record_in_work_is_handed_out_but_not_done() -> None:
    buffer = Buffer()
    left = buffer.put([record(A, 5), record(A, 6), record(B, 1)])
    assert (buffer.handed_out(), buffer.done()) == ({}, {})
    next(left)
    next(left)
    assert buffer.handed_out() == {A: 7}
    assert buffer.done() == {A: 6}


def test_settling_counts_what_was_handed_out_and_keeps_the_rest() -> None:
    buffer = Buffer()
    records = [record(A, 5), record(B, 1), record(A, 6)]
    list(islice(buffer.put(records), 2))
    assert buffer.settle() == {A: 6, B: 2}
    assert buffer.rest() == records[2:]
    assert buffer.rest() == []


def test_a_batch_is_in_work_as_one() -> None:
    buffer = Buffer()
    buffer.hand_out([record(A, 5), record(A, 6)])
    assert (buffer.handed_out(), buffer.done()) == ({A: 7}, {})
    assert buffer.settle() == {A: 7}


def test_what_is_in_work_is_handed_out_again_before_the_rest() -> None:
    buffer = Buffer()
    records = [record(A, 5), record(B, 1), record(A, 6)]
    list(islice(buffer.put(records), 2))
    buffer.again(lambda _record: False)
    assert buffer.settle() == {A: 6}
    assert buffer.rest() == records[1:]


def test_what_is_done_after_all_is_not_handed_out_again() -> None:
    buffer = Buffer()
    records = [record(A, 5), record(A, 6)]
    buffer.hand_out(records)
    buffer.again(lambda each: each.offset() == 5)
    assert buffer.settle() == {A: 6}
    assert buffer.rest() == records[1:]


def test_dropped_partitions_are_handed_out_no_more_and_others_are() -> None:
    buffer = Buffer()
    records = [record(A, 5), record(B, 1), record(A, 6), record(B, 2), record(A, 7)]
    left = buffer.put(records)
    next(left)
    assert buffer.drop({A}) == {A: 6}
    assert list(left) == []
    assert buffer.handed_out() == {A: 6}
    assert buffer.settle() == {A: 6}
    assert [each.offset() for each in buffer.rest()] == [1, 2]


def test_a_partition_that_is_another_s_has_no_position_here() -> None:
    buffer = Buffer()
    left = buffer.put([record(A, 5), record(B, 1), record(A, 6)])
    next(left)
    next(left)
    buffer.forget({A})
    assert buffer.handed_out() == {B: 2}
    assert buffer.rest() == []


def test_what_is_kept_comes_before_what_was_kept_earlier() -> None:
    buffer = Buffer()
    late, early = record(A, 9), record(A, 8)
    buffer.keep([late])
    buffer.keep([early])
    assert buffer.rest() == [early, late]


def test_quick_work_is_given_more_at_a_time_and_slow_work_less() -> None:
    pace = Pace()
    for _ in range(10):
        pace.given(now_s=0)
        pace.asked(now_s=0.001)
    assert pace.size == LARGEST
    pace.given(now_s=0)
    pace.asked(now_s=LARGEST * 2)  # two seconds each
    assert pace.size == 1
    pace.asked(now_s=10_000)  # nothing was given meanwhile
    assert pace.size == 1
    assert LARGEST > FIRST
