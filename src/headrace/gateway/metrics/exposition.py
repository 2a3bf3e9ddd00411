"""Metric families in Prometheus' text format. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headrace.protocol.between_brokers.broker_metrics import COUNTER, HISTOGRAM, BrokerMetricsResponse

__all__ = ["CONTENT_TYPE", "SUM", "brokers_families", "exposition", "gauge"]

SUM = "sum"  # the sample of a broker's histogram that has this as its `le` is the sum


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return (family for family in self._families if family.samples)


def exposition(families: Iterable[Metric]) -> bytes:
    return generate_latest(_Families(families))


def brokers_families(counted: Mapping[int, BrokerMetricsResponse]) -> list[Metric]:
    """Return the families that brokers have counted, with the broker's id as the label `broker`."""
    metrics: dict[str, Metric] = {}
    for broker_id, answer in sorted(counted.items()):
        for family in answer.families:
            name = family.name.removesuffix("_total") if family.kind == COUNTER else family.name
            metric = metrics.setdefault(name, Metric(name, family.help, family.kind))
            for sample in family.samples:
                named = zip(family.labels, sample.labels, strict=True)
                labels = {"broker": str(broker_id)} | {label: value for label, value in named if value}
                bound = labels.pop("le") if family.kind == HISTOGRAM else None
                if bound is None:
                    metric.add_sample(family.name, labels, sample.value)
                elif bound == SUM:
                    metric.add_sample(f"{metric.name}_sum", labels, sample.value)
                else:
                    metric.add_sample(f"{metric.name}_bucket", labels | {"le": bound}, sample.value)
                    if bound == "+Inf":
                        metric.add_sample(f"{metric.name}_count", labels, sample.value)
    return list(metrics.values())


def gauge(
    name: str, help_: str, labels: Sequence[str], samples: Iterable[tuple[Sequence[str], float]]
) -> Metric:
    """Return a gauge with these samples, each of which has its label values in the order of `labels`."""
    family = GaugeMetricFamily(name, help_, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family
