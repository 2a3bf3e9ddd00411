"""What an admin is told, as people write it."""

from typing import Any

import pytest

from headrace.client.admin.arguments import (
    broker_of,
    check_new_topic,
    check_topic,
    count_of,
    ends_of,
    group_offsets,
    names_of,
    texts,
    time_of,
    total_of,
)
from headrace.client.errors import BadSetting, NoSuchTopic


class Number:
    """A whole number that is no int, such as numpy's."""

    def __index__(self) -> int:
        return 7


@pytest.mark.parametrize("name", [b"t", None, 5, ["t"], "t\0x", "\udcff"])
def test_a_topic_is_named_by_a_text_that_arrives_whole(name: Any) -> None:
    with pytest.raises(NoSuchTopic, match="there can be no topic"):
        check_topic(name)
    with pytest.raises(NoSuchTopic, match="there can be no topic"):
        check_new_topic(name)


def test_what_a_broker_can_say_of_a_new_name_is_left_to_it() -> None:
    check_new_topic("no/slash")
    check_new_topic("")
    with pytest.raises(NoSuchTopic, match="a name has 1 to 249"):
        check_topic("no/slash")


@pytest.mark.parametrize("number", [broker_of, time_of, total_of])
def test_a_number_is_a_whole_one(number: Any) -> None:
    assert number(3) == 3
    assert number(Number()) == 7
    for given in ("3", 3.0, None, [3], -1, 2**70):
        with pytest.raises(BadSetting, match="it is an int"):
            number(given)


def test_how_many_partitions_may_be_left_to_the_brokers() -> None:
    assert count_of("partitions", None, 10) == count_of("partitions", -1, 10) == -1
    assert count_of("partitions", 10, 10) == 10
    for given in ("3", 3.0, 11, -2):
        with pytest.raises(BadSetting, match=r"partitions=.*: it is an int from 1 to 10, or None"):
            count_of("partitions", given, 10)


def test_offsets_of_a_group_are_by_partition() -> None:
    assert group_offsets({("t", 0): 5, ("u", Number()): Number()}) == {("t", 0): 5, ("u", 7): 7}
    assert group_offsets({("t", 0): 2**63 - 1}) == {("t", 0): 2**63 - 1}


@pytest.mark.parametrize("given", [[("t", 0)], 5, None, "t", {"t": 1}, {("t", "0"): 1}, {("t", -1): 1}])
def test_other_offsets_of_a_group_are_told_how_they_are_written(given: Any) -> None:
    with pytest.raises(BadSetting, match="offsets are by partition, such as"):
        group_offsets(given)


@pytest.mark.parametrize("offset", ["1", 1.5, None, -1, -2, 2**63, "latest"])
def test_a_group_goes_on_at_a_number(offset: Any) -> None:
    with pytest.raises(BadSetting, match=r"offset=.*: it is an int from 0 on"):
        group_offsets({("t", 0): offset})


def test_a_group_reads_topics_that_have_a_name() -> None:
    with pytest.raises(NoSuchTopic, match="not by bytes"):
        group_offsets({(b"t", 0): 1})


def test_all_of_a_partition_may_be_deleted() -> None:
    assert ends_of({0: 5, Number(): -1}) == {0: 5, 7: -1}


@pytest.mark.parametrize("given", [5, None, [0], "0", {"0": 1}, {0: "1"}, {0: -2}, {0: 2**64}, {-1: 0}])
def test_other_ends_are_refused(given: Any) -> None:
    with pytest.raises(BadSetting):
        ends_of(given)


def test_values_of_settings_are_texts() -> None:
    given = {"retention.ms": 1000, "preallocate": True, "cleanup.policy": "compact"}
    assert texts(given, "sets") == {
        "retention.ms": "1000",
        "preallocate": "true",
        "cleanup.policy": "compact",
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (5, "sets is a dict"),
        (["retention.ms"], "sets is a dict"),
        (None, "sets is a dict"),
        ({5: 5}, "a setting is named by a str"),
        ({"retention.ms": None}, "among `unsets`"),
        ({"retention.ms": "1000\0x"}, "has no zero in it"),
    ],
)
def test_other_settings_are_refused(given: Any, said: str) -> None:
    with pytest.raises(BadSetting, match=said):
        texts(given, "sets")


def test_settings_that_go_back_to_the_default_are_a_list() -> None:
    assert names_of(("a", "b", "a")) == ["a", "b"]
    for given in ("retention.ms", b"retention.ms", None, 5):
        with pytest.raises(BadSetting, match="unsets is a list of names"):
            names_of(given)
    for unnamed in ([5], [["a"]], ["a\0"]):
        with pytest.raises(BadSetting, match="a setting is named by a str"):
            names_of(unnamed)
