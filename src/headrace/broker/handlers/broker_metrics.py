"""BrokerMetrics (key 10000), v0: for gateways, which serve the metrics over HTTP.

Behaviour: returns the metrics of this broker under the names of Kafka's dashboards; with `prefixes`, only
           names that begin with one of them. This API is Headrace's own, and ApiVersions does not list it.
"""

import asyncio

from headrace.broker.metrics import families
from headrace.broker.requests.dispatch import BrokerKey, Context, handles
from headrace.broker.requests.requirements import on_cluster
from headrace.protocol.between_brokers.broker_metrics import BrokerMetricsRequest, BrokerMetricsResponse
from headrace.security.authorization import Operation


@handles(BrokerKey.BROKER_METRICS, range(1), requires=on_cluster(Operation.DESCRIBE), when_ready=False)
async def broker_metrics(request: BrokerMetricsRequest, context: Context) -> BrokerMetricsResponse:
    found = []
    for family in families(context.broker, request.prefixes):
        found.append(family)
        await asyncio.sleep(0)  # a family of thousands of partitions takes milliseconds
    return BrokerMetricsResponse(
        broker_id=context.broker.broker_id, at_ms=context.broker.now_ms(), families=found
    )
