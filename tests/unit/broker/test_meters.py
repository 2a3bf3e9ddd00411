"""Counters: what they come to, and that strangers cannot make them grow."""

from time import perf_counter

from headrace.broker.meters import BUCKETS, Meters, RequestMeter, TopicMeter


def test_a_batch_counts_its_messages_and_bytes() -> None:
    meter = TopicMeter()
    meter.appended(3, 200)
    meter.appended(1, 80)

    assert (meter.produces, meter.messages_in, meter.bytes_in) == (2, 4, 280)


def test_a_request_is_counted_where_its_time_belongs() -> None:
    meter = RequestMeter()
    meter.done(perf_counter() - 0.003)  # 3,000 microseconds are less than 2^12
    meter.done(perf_counter() - 1e9)

    assert meter.count == 2
    assert [n for n, count in enumerate(meter.buckets) if count] == [12, BUCKETS - 1]


def test_names_that_are_no_topics_share_one_meter() -> None:
    meters = Meters()
    orders = meters.topic("orders")
    for name in ("orders", "nothing", "nowhere"):
        meters.of(name).failed_produces += 1

    assert orders.failed_produces == 1
    assert meters.elsewhere.failed_produces == 2
    assert meters.topics.keys() == {"orders"}


def test_what_a_topic_that_is_gone_has_counted_stays_in_the_sums() -> None:
    meters = Meters()
    meters.topic("orders").appended(3, 200)
    meters.forget("orders")
    meters.forget("nothing")

    assert (meters.elsewhere.messages_in, meters.elsewhere.bytes_in) == (3, 200)
    assert not meters.topics
