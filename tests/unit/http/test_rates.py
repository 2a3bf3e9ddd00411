"""Rates: the difference of two samples."""

from headrace.http.metrics.rates import Rate, Sample, between


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
