"""REST proxy, v3: the cluster and its brokers."""

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from headrace.client.cluster.reading import read_partitions
from headrace.gateway.current import base_url
from headrace.gateway.problems import answers
from headrace.gateway.reach import ReachDep
from headrace.gateway.rest.bodies import BrokerId
from headrace.gateway.rest.hub import HubDep
from headrace.gateway.rest.v3_resources import (
    Collection,
    Links,
    LinksDep,
    Resource,
    V3Route,
    get_broker,
    read_cluster_id,
    v3_router,
)
from headrace.gateway.rest.v3_topics import replica
from headrace.protocol.schema.metadata import MetadataResponseBroker

clusters_router = APIRouter(prefix="/v3", tags=["REST proxy v3"], route_class=V3Route)
router = v3_router()


@clusters_router.get("/clusters", responses=answers(503), summary="List clusters: one")
async def clusters(request: Request, hub: HubDep, reach: ReachDep) -> Collection:
    """Return the gateway's cluster in a list."""
    links = Links(base_url(request), await read_cluster_id(hub))
    return links.collection("Cluster", [], [await run_in_threadpool(cluster, links, reach)])


@router.get("", summary="Get the cluster")
def cluster(links: LinksDep, reach: ReachDep) -> Resource:
    """Return the addresses of the cluster's brokers, topics, groups and settings."""
    controller = reach.metadata().controller_id
    fields = {"controller": links.related("brokers", controller)} if controller >= 0 else {}
    return links.resource("Cluster", [], **fields)


@router.get("/brokers", summary="List brokers")
def brokers(links: LinksDep, reach: ReachDep) -> Collection:
    """Return the brokers that are alive."""
    found = sorted(reach.metadata().brokers, key=lambda broker: broker.node_id)
    return links.collection("Broker", ["brokers"], (_broker(links, each) for each in found))


@router.get("/brokers/{broker_id}", summary="Get a broker")
def broker(broker_id: BrokerId, links: LinksDep, reach: ReachDep) -> Resource:
    """Return host and port of the broker."""
    return _broker(links, get_broker(reach.metadata(), broker_id))


@router.get("/brokers/{broker_id}/partition-replicas", summary="List the replicas of a broker")
def partition_replicas(broker_id: BrokerId, links: LinksDep, reach: ReachDep) -> Collection:
    """Return the broker's replicas, by topic and partition."""
    metadata = reach.metadata()
    get_broker(metadata, broker_id)
    held = [partition for partition in read_partitions(metadata) if broker_id in partition.replicas]
    found = (
        replica(links, partition.topic_partition, broker_id, partition.leader, partition.in_sync)
        for partition in held
    )
    return links.collection("Replica", ["brokers", broker_id, "partition-replicas"], found)


def _broker(links: Links, found: MetadataResponseBroker) -> Resource:
    return links.resource(
        "Broker",
        ["brokers", found.node_id],
        broker_id=found.node_id,
        host=found.host,
        port=found.port,
        rack=found.rack,
    )
