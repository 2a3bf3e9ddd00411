"""Resources of the REST proxy, v3: each has a kind, its own address and the addresses of related ones.

The routes of v3 return the fields of resources, which this module completes.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from itertools import zip_longest
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from headrace.client.errors import ClientError, NoSuchGroup, NoSuchTopic, TopicExists
from headrace.gateway.current import RawRoute, base_url, raw_path
from headrace.gateway.problems import Problem, answers, code_of
from headrace.gateway.rest.hub import Hub, HubDep

Fields = dict[str, Any]
Finding = TypeVar("Finding", bound=Callable[..., Any])

_CODES: Final = {NoSuchTopic: 40403, NoSuchGroup: 40405, TopicExists: 40002}
"""The error codes that differ from those of our own API."""

_GROUP: Final = "consumer-groups/{consumer_group_id}"
_WHERE: Final = "{topic_name}/partitions/{partition_id}"
_PARTITION: Final = f"topics/{_WHERE}"
_PATHS: Final[Mapping[str, str]] = {
    "Cluster": "",
    "Broker": "brokers/{broker_id}",
    "Topic": "topics/{topic_name}",
    "Partition": _PARTITION,
    "Replica": f"{_PARTITION}/replicas/{{broker_id}}",
    "Reassignment": f"{_PARTITION}/reassignment",
    "ConsumerGroup": _GROUP,
    "Consumer": f"{_GROUP}/consumers/{{consumer_id}}",
    "ConsumerAssignment": f"{_GROUP}/consumers/{{consumer_id}}/assignments/{_WHERE}",
    "ConsumerLag": f"{_GROUP}/lags/{_WHERE}",
    "ConsumerGroupLagSummary": f"{_GROUP}/lag-summary",
    "TopicConfig": "topics/{topic_name}/configs/{name}",
    "BrokerConfig": "brokers/{broker_id}/configs/{name}",
    "ClusterConfig": "broker-configs/{name}",
}
"""Where a resource is in its cluster, by its kind; the names are those of its fields."""

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


def v3_code_of(error: Problem | ClientError) -> int:
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), code_of(error))


class V3Route(RawRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_in_v3(request: Request) -> Response:
            try:
                return await handle(request)
            except ClientError as error:
                raise Problem(v3_code_of(error), str(error)) from None

        return handle_in_v3


class Metadata(BaseModel):
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


class Related(tuple[object, ...]):
    """A field with the address of another resource, which is at this path in the cluster."""

    __slots__ = ()


class Links:
    """Makes resources with their addresses under /v3 of this gateway."""

    def __init__(self, base: str, cluster_id: str, requested: str = "") -> None:
        """`requested` is the path of the request, which is that of the list in its response."""
        self._base = base
        self._requested = requested
        self.cluster_id = cluster_id

    def to(self, *path: object) -> str:
        """Return the address of something in the cluster; without a path, of the cluster."""
        parts = ["v3", "clusters", self.cluster_id, *path]
        return self._base + "/".join(quote(str(part), safe=":") for part in parts)

    def resource(self, kind: str, fields: Fields) -> Resource:
        """Return a resource with the addresses of what is within it.

        Its name is made of its path: topics/orders/partitions/0 is named topic=orders/partition=0.
        """
        path = [
            fields[part[1:-1]] if part.startswith("{") else part for part in _PATHS[kind].split("/") if part
        ]
        name = f"crn:///kafka={self.cluster_id}"
        for what, which in zip_longest(path[::2], path[1::2]):
            name += f"/{what}" if which is None else f"/{what.removesuffix('s')}={which}"
        within = {
            field: Related((*path, *where.split("/"))) for field, where in _WITHIN.get(kind, {}).items()
        }
        shown = {
            field: {"related": self.to(*value)} if isinstance(value, Related) else value
            for field, value in (fields | within).items()
        }
        metadata = {"self": self.to(*path), "resource_name": name}
        return Resource.model_validate(
            {"kind": f"Kafka{kind}", "metadata": metadata, "cluster_id": self.cluster_id, **shown}
        )

    def collection(self, kind: str, found: Iterable[Fields]) -> Collection:
        metadata = ListMetadata.model_validate({"self": f"{self._base}{self._requested}"})
        data = [self.resource(kind, fields) for fields in found]
        return Collection.model_construct(kind=f"Kafka{kind}List", metadata=metadata, data=data)


async def links_of(
    request: Request,
    hub: HubDep,
    cluster_id: Annotated[str, Path(description="The cluster's id.", max_length=200)],
) -> Links:
    """Return the links of the cluster; raise a Problem (404) if the path names another cluster."""
    links = await own_links(request, hub)
    if cluster_id != links.cluster_id:
        raise Problem(404, f"there is no cluster {cluster_id} here, only {links.cluster_id}")
    return links


async def own_links(request: Request, hub: Hub) -> Links:
    """Return the links of the gateway's cluster, whose id is read once."""
    if hub.cluster_id is None:
        hub.cluster_id = (await run_in_threadpool(hub.reach.metadata)).cluster_id or ""
    requested = raw_path(request.scope) or request.url.path
    return Links(base_url(request), hub.cluster_id, requested.removeprefix("/"))


LinksDep = Annotated[Links, Depends(links_of)]


class V3Router(APIRouter):
    """A router for resources of the cluster. What a decorated function returns are fields of resources."""

    def __init__(self) -> None:
        super().__init__(
            prefix="/v3/clusters/{cluster_id}",
            tags=["REST proxy v3"],
            route_class=V3Route,
            responses=answers(400, 404, 503),
        )

    def lists(self, kind: str, path: str | None = None) -> Callable[[Finding], Finding]:
        """Serve a list of resources: at `path`, or where the resources of this kind are."""
        at = f"/{_PATHS[kind].rpartition('/')[0]}" if path is None else path
        return self._serve(at, Collection, lambda links, found: links.collection(kind, found))

    def shows(self, kind: str) -> Callable[[Finding], Finding]:
        """Serve one resource of a kind."""
        at = f"/{_PATHS[kind]}" if _PATHS[kind] else ""
        return self._serve(at, Resource, lambda links, found: links.resource(kind, found))

    def _serve(
        self, path: str, model: type[BaseModel], answer: Callable[[Links, Any], BaseModel]
    ) -> Callable[[Finding], Finding]:
        def add(find: Finding) -> Finding:
            def serve(links: LinksDep, found: Annotated[Any, Depends(find)]) -> BaseModel:
                return answer(links, found)

            self.get(path, response_model=model, description=find.__doc__, name=find.__name__)(serve)
            return find

        return add
