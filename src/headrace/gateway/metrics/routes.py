"""/metrics, /healthz and /readyz, and the counters that the console draws."""

import logging
import time
from collections.abc import Iterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import PlainTextResponse
from prometheus_client.core import CounterMetricFamily, Metric

from headrace.client.cluster.reading import read_partitions
from headrace.client.errors import ClientError
from headrace.gateway.current import clients_of
from headrace.gateway.metrics import derived
from headrace.gateway.metrics.counters import TIMEOUT_S, Counted, Counters
from headrace.gateway.metrics.exposition import CONTENT_TYPE, brokers_families, exposition
from headrace.gateway.problems import Problem, answers
from headrace.gateway.reach import Reach
from headrace.gateway.users.authentication import RESULTS
from headrace.protocol.schema.metadata import MetadataResponse

logger = logging.getLogger(__name__)

router = APIRouter(tags=["health"], responses=answers(503))


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    return {"status": "ok"}


@router.get("/readyz")
def readyz(request: Request) -> dict[str, str]:
    """Return ready if a broker answers, and accepts the gateway's own credentials if it has any."""
    service: Reach = request.app.state.reach
    try:
        service.metadata()
    except ClientError as error:
        if request.app.state.everyone is not None:
            raise
        logger.warning("the gateway is not ready: %s", error)  # its message names brokers
        raise Problem(50301, "the gateway does not reach the cluster: its log says why") from None
    return {"status": "ready"}


@router.get("/metrics", response_class=PlainTextResponse, responses=answers(404))
def metrics(
    request: Request,
    broker: Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Only this broker.")] = None,
) -> PlainTextResponse:
    """Return the metrics of every broker, of topics, of groups with their lag, and of pipelines.

    One gateway has the metrics of the whole cluster. Where each broker has a gateway and each is scraped,
    `?broker=ID` returns that broker's own metrics only. A broker that does not answer within seconds is left
    out, and its `headrace_broker_up` is 0.
    """
    counters, users = clients_of(request).counters, request.app.state.users
    if broker is None:
        families = list(_of_cluster(counters))
    else:
        metadata = counters.metadata()
        counted = counters.count(metadata, only=broker)
        if broker not in counted:
            raise Problem(40404, f"broker {broker} does not exist or does not answer")
        families = list(_of_brokers(counters, metadata, counted))
    if users is not None:
        authentications = CounterMetricFamily(
            "headrace_gateway_authentications", "Authentications to this gateway.", labels=["result"]
        )
        for result in RESULTS:
            authentications.add_metric([result], users.counts[result])
        families.append(authentications)
    return PlainTextResponse(exposition(families), media_type=CONTENT_TYPE)


def _of_cluster(counters: Counters) -> Iterator[Metric]:
    described, reported = counters.groups.begin(), counters.pipelines.begin()
    metadata = counters.metadata()
    counted = counters.count(metadata)
    yield from _of_brokers(counters, metadata, counted)
    partitions = read_partitions(metadata)
    yield from derived.of_brokers(metadata, partitions, counted)
    yield from derived.of_partitions(partitions, counted)
    yield derived.of_followers(partitions, counted)
    until_s = time.monotonic() + TIMEOUT_S
    groups = counters.groups.in_time(described, until_s)
    if groups is not None:
        yield from derived.of_groups(groups, counted)
    pipelines = counters.pipelines.in_time(reported, until_s)
    if pipelines is not None:
        yield from derived.of_pipelines(pipelines, time.time_ns() // 1_000_000)


def _of_brokers(counters: Counters, metadata: MetadataResponse, counted: Counted) -> Iterator[Metric]:
    """Yield what brokers have counted themselves, and what their disks have."""
    yield from brokers_families(counted)
    yield derived.of_requests(counted)
    yield from derived.of_disks(counters.disks(metadata, counted))


_COUNTERS: Final = {
    "kafka_server_brokertopicmetrics_messagesin_total": "messages_in",
    "kafka_server_brokertopicmetrics_bytesin_total": "bytes_in",
    "kafka_server_brokertopicmetrics_bytesout_total": "bytes_out",
}


@router.get("/api/v1/counters", tags=["cluster"])
def counters(
    request: Request, topic: Annotated[str, Query(description="Only of this topic.")] = ""
) -> dict[str, Any]:
    """Return messages and bytes of each broker since it was started; rates are differences of two responses.

    A broker that does not answer, or is Apache Kafka, is in `registered` and not in `brokers`.
    """
    metadata = clients_of(request).counters.metadata()
    found: dict[int, dict[str, float]] = {}
    for broker, answer in clients_of(request).counters.count(metadata, list(_COUNTERS)).items():
        for family in answer.families:
            totals = found.setdefault(broker, dict.fromkeys(_COUNTERS.values(), 0.0))
            # A sample has the name of a topic; that of all topics together has none.
            totals[_COUNTERS[family.name]] += sum(
                sample.value for sample in family.samples if sample.labels[0] == topic
            )
    registered = sorted(broker.node_id for broker in metadata.brokers)
    return {"at_ms": time.time_ns() // 1_000_000, "registered": registered, "brokers": found}
