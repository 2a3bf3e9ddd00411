"""Rates: the difference of two samples."""

from dataclasses import replace

from headrace.gateway.metrics.rates import Rate, Sample, between


def sample(at_s: float, **counts: float) -> Sample:
    """Counts of messages by broker and topic: b1, b1_orders."""
    found = {}
    for name, value in counts.items():
        broker, _, topic = name.removeprefix("b").partition("_")
        found[int(broker), topic] = {"messages_in": value, "bytes_in": 10 * value, "bytes_out": 0.0}
    return Sample(at_s, found)


def test_a_rate_is_what_was_added_a_second() -> None:
    point = between(sample(0, b1=10, b1_orders=10), sample(2, b1=20, b1_orders=20), at_ms=7)

    assert point.brokers == {1: Rate(5, 50, 0)}
    assert point.topics == {"orders": Rate(5, 50, 0)}


def test_a_topics_rate_is_that_of_all_brokers() -> None:
    before = sample(0, b1=0, b1_orders=0, b2=0, b2_orders=0)
    point = between(before, sample(1, b1=3, b1_orders=3, b2=4, b2_orders=4), at_ms=0)

    assert point.topics == {"orders": Rate(7, 70, 0)}


def test_a_broker_that_has_started_anew_is_left_out_once() -> None:
    point = between(sample(0, b1=100, b2=5), sample(1, b1=3, b2=6), at_ms=0)

    assert point.brokers == {2: Rate(1, 10, 0)}


def test_a_broker_that_was_not_there_has_no_rate_yet() -> None:
    assert between(sample(0, b1=1), sample(1, b1=1, b2=900), at_ms=0).brokers == {1: Rate()}


def test_a_topic_that_is_new_counts_from_nothing() -> None:
    assert between(sample(0, b1=0), sample(1, b1=2, b1_new=2), at_ms=0).topics == {"new": Rate(2, 20, 0)}


def test_a_broker_that_was_not_there_adds_nothing_to_the_rate_of_a_topic() -> None:
    point = between(sample(0, b1=1), sample(1, b1=1, b2=900, b2_orders=900), at_ms=0)

    assert point.topics == {}


def test_the_rate_of_a_topic_is_not_known_while_a_broker_does_not_answer() -> None:
    died = between(sample(0, b1=1, b2=1), sample(1, b1=2), at_ms=0)
    silent = between(sample(0, b1=1), replace(sample(1, b1=2), registered=frozenset({1, 2})), at_ms=0)

    assert died.as_json("orders")["topic"] is None
    assert silent.as_json("orders")["topic"] is None
    assert list(silent.as_json("orders")["brokers"]) == ["1"]


def test_a_topic_without_traffic_has_a_rate_of_zero_if_all_brokers_answer() -> None:
    point = between(sample(0, b1=1), replace(sample(1, b1=1), registered=frozenset({1})), at_ms=0)

    assert point.as_json("orders")["topic"] == {"messages_in": 0.0, "bytes_in": 0.0, "bytes_out": 0.0}
