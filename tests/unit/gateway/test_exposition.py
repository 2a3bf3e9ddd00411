"""Prometheus' text format, read back by Prometheus' own client."""

from prometheus_client.parser import text_string_to_metric_families

from headrace.gateway.metrics.exposition import brokers_families, exposition, gauge
from headrace.protocol.between_brokers.broker_metrics import (
    COUNTER,
    HISTOGRAM,
    BrokerMetricsResponse,
    Family,
    Sample,
)


def read(text: bytes) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    return {
        sample.name: {
            tuple(sorted(each.labels.items())): each.value
            for each in family.samples
            if each.name == sample.name
        }
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def of(broker_id: int, *families: Family) -> BrokerMetricsResponse:
    return BrokerMetricsResponse(broker_id=broker_id, at_ms=0, families=families)


def bytes_in(*samples: tuple[str, float]) -> Family:
    return Family(
        name="bytes_total",
        kind=COUNTER,
        help="Bytes.",
        labels=("topic",),
        samples=[Sample(labels=(topic,), value=value) for topic, value in samples],
    )


def test_brokers_are_told_apart_by_a_label() -> None:
    counted = {1: of(1, bytes_in(("", 7), ("orders", 5))), 2: of(2, bytes_in(("orders", 4)))}
    text = exposition(brokers_families(counted))

    assert read(text)["bytes_total"] == {
        (("broker", "1"),): 7,
        (("broker", "1"), ("topic", "orders")): 5,
        (("broker", "2"), ("topic", "orders")): 4,
    }
    assert text.count(b"# TYPE bytes_total counter") == 1


def test_whatever_is_in_a_label_stays_in_it() -> None:
    nasty = 'a"b\\c\nd} 9'
    text = exposition([gauge("lag", "Behind.", ("consumergroup",), [((nasty,), 3)])])

    assert read(text)["lag"] == {(("consumergroup", nasty),): 3}


def test_a_histogram_has_buckets_a_sum_and_a_count() -> None:
    family = Family(
        name="took_seconds",
        kind=HISTOGRAM,
        help="Time.",
        labels=("request", "le"),
        samples=[
            Sample(labels=("Fetch", "0.5"), value=2),
            Sample(labels=("Fetch", "+Inf"), value=3),
            Sample(labels=("Fetch", "sum"), value=1.25),
        ],
    )
    found = read(exposition(brokers_families({1: of(1, family)})))

    who = (("broker", "1"), ("request", "Fetch"))
    assert found["took_seconds_bucket"] == {
        (who[0], ("le", "0.5"), who[1]): 2,
        (who[0], ("le", "+Inf"), who[1]): 3,
    }
    assert found["took_seconds_sum"] == {who: 1.25}
    assert found["took_seconds_count"] == {who: 3}


def test_a_family_without_numbers_is_not_said() -> None:
    assert exposition([gauge("lag", "Behind.", ("consumergroup",), [])]) == b""
