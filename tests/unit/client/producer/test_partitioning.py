"""Partitions in turn, and by a function."""

import pytest

from headrace.client.errors import ClientError
from headrace.client.producer.partitioning import ANY, FRESH_S, Chosen, Turns


def test_records_without_a_key_go_to_every_partition_in_turn() -> None:
    turns = Turns(lambda _topic: 3)
    assert [next(turns["t"]) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_every_topic_has_a_turn_of_its_own() -> None:
    counts = {"a": 2, "b": 3}
    turns = Turns(counts.__getitem__)
    assert [next(turns[topic]) for topic in "aababb"] == [0, 1, 0, 0, 1, 2]


def test_a_topic_that_is_not_there_yet_is_asked_about_again() -> None:
    answers = iter([0, 2])
    turns = Turns(lambda _topic: next(answers))
    assert [next(turns["t"]) for _ in range(4)] == [ANY, 0, 1, 0]


def test_new_partitions_are_noticed_after_a_while() -> None:
    now_s, count = 0.0, 1
    turns = Turns(lambda _topic: count, lambda: now_s)
    next(turns["t"])
    count, now_s = 2, FRESH_S - 1
    turns.look_again()
    assert [next(turns["t"]) for _ in range(2)] == [0, 0]
    now_s = FRESH_S
    turns.look_again()
    assert [next(turns["t"]) for _ in range(2)] == [0, 1]


def test_a_function_is_told_the_record_and_how_many_partitions_there_are() -> None:
    asked: list[object] = []

    def last(*record: object) -> int:
        asked.append(record)
        return 4

    chosen = Chosen(last, lambda _topic: 5)
    assert chosen.choose("t", "key", {"value": 1}) == 4
    assert asked == [("t", "key", {"value": 1}, 5)]


@pytest.mark.parametrize("answer", [5, -1, None, "0"])
def test_a_function_that_answers_with_no_partition_is_told_so(answer: object) -> None:
    chosen = Chosen(lambda *_record: answer, lambda _topic: 5)  # type: ignore[arg-type]
    with pytest.raises(ClientError, match=r"which has partitions 0 to 4"):
        chosen.choose("t", None, None)


def test_there_is_nothing_to_choose_from_in_a_topic_that_is_not_there() -> None:
    with pytest.raises(ClientError, match="create it"):
        Chosen(lambda *_record: 0, lambda _topic: 0).choose("t", None, None)
