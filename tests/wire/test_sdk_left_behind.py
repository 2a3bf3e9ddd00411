"""Producers that nobody has closed."""

import gc
import time
import warnings

import pytest

from headrace import Producer
from headrace.testing import Cluster


@pytest.mark.parametrize("sent", [1, 2])
def test_lines_for_the_log_are_no_records_that_are_left_behind(sent: int) -> None:
    with Cluster(1) as cluster:
        cluster.create_topic("orders")
        producer = Producer(cluster.bootstrap, linger_ms=100_000, reconnect_backoff_max_ms=100)
        for _ in range(sent):
            producer.send("orders", b"x")
    client = producer._flight.client
    deadline = time.monotonic() + 30
    while len(client) <= sent:  # until it complains of the broker, which is gone
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del producer, client
        gc.collect()
    mine = [str(each.message) for each in told if "producer" in str(each.message)]
    assert mine == [f"a producer with up to {sent} records in flight was not closed"]


def test_nobody_is_told_of_a_producer_that_has_sent_nothing() -> None:
    with Cluster(1) as cluster:
        producer = Producer(cluster.bootstrap)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del producer
        gc.collect()
    assert not [each for each in told if "producer" in str(each.message)]
