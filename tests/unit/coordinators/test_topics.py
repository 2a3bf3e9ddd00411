import pytest

from headrace.coordinators.errors import InvalidRegularExpression
from headrace.coordinators.topics import Topic, Topics, compile_expression
from support.groups import GroupDesk


def topics(**partitions: int) -> Topics:
    return GroupDesk().set_topics(**partitions).topics


def test_the_digest_of_no_topics_is_what_a_group_begins_with() -> None:
    assert topics(orders=3).digest([]) == 0
    assert topics(orders=3).digest(["people"]) == 0


def test_the_digest_does_not_depend_on_the_order_or_on_others() -> None:
    some, more = topics(orders=3, people=1), topics(people=1, orders=3, places=2)

    assert some.digest(["orders", "people"]) == more.digest(["people", "orders", "places not"]) != 0


def test_the_digest_changes_when_a_topic_comes_grows_goes_or_is_made_anew() -> None:
    names = ["orders", "people"]
    at = GroupDesk().set_topics(orders=3)
    later = ({"orders": 4}, {"orders": 4, "people": 1}, {"people": 1}, {"orders": 3, "people": 1})
    digests = [
        at.topics.digest(names),
        *(at.set_topics(**partitions).topics.digest(names) for partitions in later),
    ]

    assert len(set(digests)) == len(digests)


def test_the_digest_keeps_names_and_numbers_apart() -> None:
    one = Topics.of(0, {"a": Topic(b"1" * 16, 11)}, frozenset())
    other = Topics.of(0, {"a": Topic(b"1" * 15 + b"1", 1), "1": Topic(b"1" * 16, 1)}, frozenset())

    assert one.digest(["a", "1"]) != other.digest(["a", "1"])


def test_an_expression_matches_whole_names_in_re2s_language() -> None:
    some = topics(orders=1, orders_old=1, people=1)

    assert some.matching("orders") == {"orders"}
    assert some.matching("orders|p.*") == {"orders", "people"}
    assert some.matching(r"(?i)ORDERS.*") == {"orders", "orders_old"}
    assert some.matching("") == frozenset()


@pytest.mark.parametrize("expression", ["(", "a{1001}", "(?=x)", r"\1", "*", "a" * 3 + "(" * 2000])
def test_what_re2_does_not_understand_is_refused(expression: str) -> None:
    with pytest.raises(InvalidRegularExpression):
        compile_expression(expression)


def test_an_expression_that_takes_others_for_ever_takes_no_time() -> None:
    expression = "(a*)*" * 10 + "b"

    assert topics(**{"a" * 200: 1}).matching(expression) == frozenset()


def test_an_expression_is_bounded_in_its_length_and_in_the_memory_that_it_takes() -> None:
    some = topics(orders=1)

    assert some.matching("a" * 4096) == frozenset()
    with pytest.raises(InvalidRegularExpression, match="4097 characters, the maximum is 4096"):
        some.matching("a" * 4097)
    with pytest.raises(InvalidRegularExpression, match="too large"):
        some.matching(r"(\pL{1,50}x|.)*")  # half a megabyte each, once it has matched something


def test_names_are_matched_in_steps_and_remembered() -> None:
    by_name = {f"t-{number}": Topic(number.to_bytes(16, "big"), 1) for number in range(1000)}
    topics = Topics.of(1, by_name, frozenset())

    assert sum(1 for _ in topics.match("t-1.*")) > 10
    assert sum(1 for _ in topics.match("t-1.*")) == 0
    assert len(topics.matching("t-1.*")) == 111
