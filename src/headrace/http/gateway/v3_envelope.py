"""The form of REST proxy, v3: every resource with its kind, its own address and those of its relations."""

from collections.abc import Callable, Coroutine, Iterable
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from headrace.client.errors import NoSuchGroup, NoSuchTopic, TopicExists
from headrace.http.gateway.hub import Hub, Shared
from headrace.http.problems import Problem, answers
from headrace.http.raw_names import RawRoute
from headrace.http.reach import SILENCE_S

Fields = dict[str, Any]

REFUSALS = answers(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE)


class Metadata(BaseModel):
    """A resource's address, and its name."""

    self: str
    resource_name: str | None = None


class Resource(BaseModel):
    """A resource, with fields that its kind has."""

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
    """Addresses under /v3 of this gateway, and the envelopes that have them."""

    def __init__(self, base: str, cluster_id: str) -> None:
        self._base = f"{base}v3"
        self.cluster_id = cluster_id

    def to(self, *path: object) -> str:
        """The address of something in the cluster; without a path, the cluster's."""
        parts = ["clusters", self.cluster_id, *path]
        return "/".join([self._base, *(quote(str(part), safe=":") for part in parts)])

    def related(self, *path: object) -> dict[str, str]:
        return {"related": self.to(*path)}

    def resource(self, kind: str, path: Iterable[object], name: str, fields: Fields) -> Fields:
        """A resource; `name` is the end of its resource name, such as topic=orders/partition=0."""
        full = f"crn:///kafka={self.cluster_id}" + (f"/{name}" if name else "")
        return {
            "kind": f"Kafka{kind}",
            "metadata": {"self": self.to(*path), "resource_name": full},
            "cluster_id": self.cluster_id,
            **fields,
        }

    def collection(self, kind: str, path: Iterable[object], data: Iterable[Fields]) -> Fields:
        return {
            "kind": f"Kafka{kind}List",
            "metadata": {"self": self.to(*path), "next": None},
            "data": list(data),
        }

    def clusters(self, data: Iterable[Fields]) -> Fields:
        address = f"{self._base}/clusters"
        return {"kind": "KafkaClusterList", "metadata": {"self": address, "next": None}, "data": list(data)}


async def links_of(
    request: Request,
    hub: Shared,
    cluster_id: Annotated[str, Path(description="The cluster's id.", max_length=200)],
) -> Links:
    """Addresses in the cluster that is asked about; a Problem if that is another than ours."""
    ours = await own_id(hub)
    if cluster_id != ours:
        raise Problem(HTTPStatus.NOT_FOUND, 404, f"there is no cluster {cluster_id} here, only {ours}")
    return Links(str(request.base_url), ours)


async def own_id(hub: Hub) -> str:
    """The id of the cluster behind this gateway, which is asked for once."""
    if hub.cluster_id is None:
        hub.cluster_id = await run_in_threadpool(_ask_id, hub)
    return hub.cluster_id


def _ask_id(hub: Hub) -> str:
    with hub.reach.brokers(SILENCE_S) as brokers:
        return brokers.metadata().cluster_id or ""


Linked = Annotated[Links, Depends(links_of)]


class V3Route(RawRoute):
    """A route whose refusals have v3's numbers."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_in_v3(request: Request) -> Response:
            try:
                return await handle(request)
            except NoSuchTopic as error:
                raise Problem(HTTPStatus.NOT_FOUND, 40403, str(error)) from None
            except NoSuchGroup as error:
                raise Problem(HTTPStatus.NOT_FOUND, 40405, str(error)) from None
            except TopicExists as error:
                raise Problem(HTTPStatus.BAD_REQUEST, 40002, str(error)) from None

        return handle_in_v3
