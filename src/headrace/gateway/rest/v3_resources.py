"""Resources of the REST proxy, v3: each has a kind, its own address and the addresses of related ones."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from headrace.client.errors import ClientError, NoSuchGroup, NoSuchTopic, TopicExists
from headrace.gateway.admin.brokers import one_broker
from headrace.gateway.current import RawRoute, base_url
from headrace.gateway.problems import Problem, answers, code_of
from headrace.gateway.rest.hub import Hub, HubDep
from headrace.protocol.schema.metadata import MetadataResponse, MetadataResponseBroker

Fields = dict[str, Any]

_CODES: Final = {NoSuchTopic: 40403, NoSuchGroup: 40405, TopicExists: 40002}
"""The error codes that differ from those of our own API."""


def v3_code_of(error: Problem | ClientError) -> int:
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), code_of(error))


_WITHIN: Final[Mapping[str, Mapping[str, str]]] = {
    "Cluster": {
        "brokers": "brokers",
        "broker_configs": "broker-configs",
        "consumer_groups": "consumer-groups",
        "topics": "topics",
        "partition_reassignments": "topics/-/partitions/-/reassignment",
    },
    "Broker": {"configs": "configs", "partition_replicas": "partition-replicas"},
    "Topic": {
        "partitions": "partitions",
        "configs": "configs",
        "partition_reassignments": "partitions/-/reassignment",
    },
    "Partition": {"replicas": "replicas", "reassignment": "reassignment"},
    "ConsumerGroup": {"consumers": "consumers", "lag_summary": "lag-summary"},
    "Consumer": {"assignments": "assignments"},
}
"""Where the resources within a resource are, by its kind and the field that has their address."""


class V3Route(RawRoute):
    """A route with the error codes of v3."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_in_v3(request: Request) -> Response:
            try:
                return await handle(request)
            except ClientError as error:
                raise Problem(v3_code_of(error), str(error)) from None

        return handle_in_v3


def v3_router(path: str = "") -> APIRouter:
    """Return a router for resources of the cluster under `path`."""
    return APIRouter(
        prefix=f"/v3/clusters/{{cluster_id}}{path}",
        tags=["REST proxy v3"],
        route_class=V3Route,
        responses=answers(400, 404, 503),
    )


class Metadata(BaseModel):
    """A resource's address and name."""

    self: str
    resource_name: str | None = None


class Resource(BaseModel):
    """A resource, with the fields of its kind."""

    model_config = ConfigDict(extra="allow")

    kind: str
    metadata: Metadata


class ListMetadata(BaseModel):
    """A list's address; there is never a next page."""

    self: str
    next: str | None = None


class Collection(BaseModel):
    """Resources of one kind."""

    kind: str
    metadata: ListMetadata
    data: Annotated[list[Resource], Field(default_factory=list)]


class Links:
    """Makes resources with their addresses under /v3 of this gateway."""

    def __init__(self, base: str, cluster_id: str) -> None:
        self._base = f"{base}v3"
        self.cluster_id = cluster_id

    def to(self, *path: object) -> str:
        """Return the address of something in the cluster; without a path, of the cluster."""
        parts = ["clusters", self.cluster_id, *path]
        return "/".join([self._base, *(quote(str(part), safe=":") for part in parts)])

    def related(self, *path: object) -> dict[str, str]:
        return {"related": self.to(*path)}

    def resource(self, kind: str, path: Sequence[object], **fields: Any) -> Resource:
        """Return a resource with the addresses of what is within it.

        Its name is made of its path: topics/orders/partitions/0 is named topic=orders/partition=0.
        """
        name = f"crn:///kafka={self.cluster_id}"
        for what, which in zip_longest(path[::2], path[1::2]):
            name += f"/{what}" if which is None else f"/{str(what).removesuffix('s')}={which}"
        inner = {
            name: self.related(*path, *where.split("/")) for name, where in _WITHIN.get(kind, {}).items()
        }
        metadata = {"self": self.to(*path), "resource_name": name}
        return Resource.model_validate(
            {"kind": f"Kafka{kind}", "metadata": metadata, "cluster_id": self.cluster_id, **fields, **inner}
        )

    def collection(self, kind: str, path: Iterable[object], data: Iterable[Resource]) -> Collection:
        """Return a list of resources; the list of clusters is the only one that is not within a cluster."""
        address = f"{self._base}/clusters" if kind == "Cluster" else self.to(*path)
        return Collection.model_construct(
            kind=f"Kafka{kind}List", metadata=ListMetadata.model_validate({"self": address}), data=list(data)
        )


async def links_of(
    request: Request,
    hub: HubDep,
    cluster_id: Annotated[str, Path(description="The cluster's id.", max_length=200)],
) -> Links:
    """Return the links of the cluster; raise a Problem (404) if the path names another cluster."""
    ours = await read_cluster_id(hub)
    if cluster_id != ours:
        raise Problem(404, f"there is no cluster {cluster_id} here, only {ours}")
    return Links(base_url(request), ours)


async def read_cluster_id(hub: Hub) -> str:
    """Return the id of the gateway's cluster, which is read once."""
    if hub.cluster_id is None:
        hub.cluster_id = (await run_in_threadpool(hub.reach.metadata)).cluster_id or ""
    return hub.cluster_id


LinksDep = Annotated[Links, Depends(links_of)]


def get_broker(metadata: MetadataResponse, broker_id: int) -> MetadataResponseBroker:
    """Return a broker that is alive; raise a Problem if there is none with that id."""
    by_id = {broker.node_id: broker for broker in metadata.brokers}
    return one_broker(dict(sorted(by_id.items())), broker_id)
