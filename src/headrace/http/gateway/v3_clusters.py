"""REST proxy, v3: the cluster and its brokers."""

from http import HTTPStatus

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from headrace.client.cluster.reading import read_partitions
from headrace.http.gateway.asking import BrokerId
from headrace.http.gateway.hub import Shared
from headrace.http.gateway.v3_envelope import (
    REFUSALS,
    Collection,
    Fields,
    Linked,
    Links,
    Resource,
    V3Route,
    own_id,
)
from headrace.http.gateway.v3_partitions import replica
from headrace.http.problems import Problem, answers
from headrace.http.reach import SILENCE_S, Reach, Reached
from headrace.protocol.schema.metadata import MetadataResponse, MetadataResponseBroker

clusters_router = APIRouter(prefix="/v3", tags=["REST proxy v3"], route_class=V3Route)
router = APIRouter(prefix="/v3/clusters/{cluster_id}", tags=["REST proxy v3"], route_class=V3Route)


@clusters_router.get(
    "/clusters",
    response_model=Collection,
    responses=answers(HTTPStatus.SERVICE_UNAVAILABLE),
    summary="The clusters: one",
)
async def clusters(request: Request, hub: Shared, reach: Reached) -> Fields:
    """The cluster behind this gateway."""
    links = Links(str(request.base_url), await own_id(hub))
    return links.clusters([await run_in_threadpool(cluster, links, reach)])


@router.get("", response_model=Resource, responses=REFUSALS, summary="The cluster")
def cluster(links: Linked, reach: Reached) -> Fields:
    """With the addresses of all that is in it."""
    found = _metadata(reach)
    return _cluster(links, found.controller_id if found.controller_id >= 0 else None)


@router.get("/brokers", response_model=Collection, responses=REFUSALS, summary="Its brokers")
def brokers(links: Linked, reach: Reached) -> Fields:
    """Those that are alive."""
    found = sorted(_metadata(reach).brokers, key=lambda each: each.node_id)
    return links.collection("Broker", ["brokers"], (_broker(links, each) for each in found))


@router.get(
    "/brokers/{broker_id}",
    response_model=Resource,
    responses=REFUSALS,
    summary="A broker",
)
def broker(broker_id: BrokerId, links: Linked, reach: Reached) -> Fields:
    """Where it listens."""
    return _broker(links, the_broker(_metadata(reach), broker_id))


@router.get(
    "/brokers/{broker_id}/partition-replicas",
    response_model=Collection,
    responses=REFUSALS,
    summary="What is on a broker",
)
def partition_replicas(broker_id: BrokerId, links: Linked, reach: Reached) -> Fields:
    """Its replicas, by topic and partition."""
    found = _metadata(reach)
    the_broker(found, broker_id)
    held = [each for each in read_partitions(found) if broker_id in each.replicas]
    return links.collection(
        "Replica",
        ["brokers", broker_id, "partition-replicas"],
        (
            replica(links, each.topic_partition, broker_id, leader=each.leader, in_sync=each.in_sync)
            for each in held
        ),
    )


def the_broker(found: MetadataResponse, broker_id: int) -> MetadataResponseBroker:
    """A broker that is alive; a Problem if it is none of these."""
    there = {each.node_id: each for each in found.brokers}
    if broker_id not in there:
        said = f"there is no broker {broker_id}, only {', '.join(map(str, sorted(there)))}"
        raise Problem(HTTPStatus.NOT_FOUND, 40404, said)
    return there[broker_id]


def _metadata(reach: Reach) -> MetadataResponse:
    with reach.brokers(SILENCE_S) as asked:
        return asked.metadata()


def _cluster(links: Links, controller: int | None) -> Fields:
    fields: Fields = {} if controller is None else {"controller": links.related("brokers", controller)}
    relations = {
        "brokers": ["brokers"],
        "broker_configs": ["broker-configs"],
        "consumer_groups": ["consumer-groups"],
        "topics": ["topics"],
        "partition_reassignments": ["topics", "-", "partitions", "-", "reassignment"],
    }
    return links.resource(
        "Cluster", [], "", fields | {name: links.related(*path) for name, path in relations.items()}
    )


def _broker(links: Links, found: MetadataResponseBroker) -> Fields:
    at = ["brokers", found.node_id]
    return links.resource(
        "Broker",
        at,
        f"broker={found.node_id}",
        {
            "broker_id": found.node_id,
            "host": found.host,
            "port": found.port,
            "rack": found.rack,
            "configs": links.related(*at, "configs"),
            "partition_replicas": links.related(*at, "partition-replicas"),
        },
    )
