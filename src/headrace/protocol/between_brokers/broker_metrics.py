"""BrokerMetrics (key 10000), v0: a broker's metrics, for gateways.

Kafka exposes its metrics by JMX. The API is not advertised; a broker that does not know it closes the
connection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.protocol.message import Message, Struct, field

BROKER_METRICS: Final = 10_000
COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"


class Sample(Struct):
    """One sample; the values of its labels are in the family's order."""

    labels: Sequence[str] = field("[]string", "0+")
    value: float = field("float64", "0+")


class Family(Struct):
    """Samples of one name and kind with different labels; a histogram's last label is `le`."""

    name: str = field("string", "0+")
    kind: str = field("string", "0+")
    help: str = field("string", "0+")
    labels: Sequence[str] = field("[]string", "0+")
    samples: Sequence[Sample] = field("[]Sample", "0+")


def gauge(name: str, help_: str, value: float) -> Family:
    return Family(name=name, kind=GAUGE, help=help_, labels=(), samples=[Sample(labels=(), value=value)])


def counter(name: str, help_: str, value: float) -> Family:
    return Family(name=name, kind=COUNTER, help=help_, labels=(), samples=[Sample(labels=(), value=value)])


class BrokerMetricsRequest(Message, key=BROKER_METRICS, versions="0", flexible="0+"):
    prefixes: Sequence[str] = field("[]string", "0+", default=())
    """Only families whose names begin with this; all if empty."""


class BrokerMetricsResponse(Message, key=BROKER_METRICS, versions="0", flexible="0+"):
    error_code: int = field("int16", "0+", default=0)
    broker_id: int = field("int32", "0+")
    at_ms: int = field("int64", "0+")
    families: Sequence[Family] = field("[]Family", "0+")
