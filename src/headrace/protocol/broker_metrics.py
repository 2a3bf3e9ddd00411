"""BrokerMetrics (key 10000), v0: what a broker has counted, for gateways to show it.

Kafka says such things by JMX. No client is told of this API; a broker that does not know it hangs up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.protocol.message import Message, Struct, field

BROKER_METRICS: Final = 10_000
COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"


class Sample(Struct):
    """One number: its labels' values in the family's order."""

    labels: Sequence[str] = field("[]string", "0+")
    value: float = field("float64", "0+")


class Family(Struct):
    """Numbers of one name and kind that differ in their labels; a histogram's last label is `le`."""

    name: str = field("string", "0+")
    kind: str = field("string", "0+")
    help: str = field("string", "0+")
    labels: Sequence[str] = field("[]string", "0+")
    samples: Sequence[Sample] = field("[]Sample", "0+")


class BrokerMetricsRequest(Message, key=BROKER_METRICS, versions="0", flexible="0+"):
    prefixes: Sequence[str] = field("[]string", "0+", default=())
    """Families whose names begin so; none: all."""


class BrokerMetricsResponse(Message, key=BROKER_METRICS, versions="0", flexible="0+"):
    error_code: int = field("int16", "0+", default=0)
    broker_id: int = field("int32", "0+")
    at_ms: int = field("int64", "0+")
    families: Sequence[Family] = field("[]Family", "0+")
