"""BrokerMetrics (key 10000), v0: for gateways, which show it to Prometheus and to people.

Behaviour: what this broker has counted, under the names of Kafka's dashboards; with `prefixes`, only names
           that begin with one of them. Ours alone: no client is told of it.
"""

import asyncio

from headrace.broker.dispatch import BrokerKey, Context, handles
from headrace.broker.metrics import families
from headrace.broker.requirements import on_cluster
from headrace.protocol.broker_metrics import BrokerMetricsRequest, BrokerMetricsResponse
from headrace.security.authorization import Operation


@handles(BrokerKey.BROKER_METRICS, range(1), requires=on_cluster(Operation.DESCRIBE), when_ready=False)
async def broker_metrics(request: BrokerMetricsRequest, context: Context) -> BrokerMetricsResponse:
    found = []
    for family in families(context.broker, request.prefixes):
        found.append(family)
        await asyncio.sleep(0)  # with thousands of partitions each takes milliseconds, which are others' too
    return BrokerMetricsResponse(
        broker_id=context.broker.broker_id, at_ms=context.broker.now_ms(), families=found
    )
