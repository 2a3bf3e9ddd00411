"""REST proxy, v3: topics."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field, StrictBool, StrictStr

from headrace.client.admin.topics import Topic
from headrace.http.gateway.asking import PLACES, SETTINGS, Body, Index, Name, TopicName, example
from headrace.http.gateway.v3_envelope import (
    REFUSALS,
    Collection,
    Fields,
    Linked,
    Links,
    Resource,
    V3Route,
)
from headrace.http.problems import naming_a_new_one
from headrace.http.reach import SILENCE_S, Reach, Reached

router = APIRouter(prefix="/v3/clusters/{cluster_id}/topics", tags=["REST proxy v3"], route_class=V3Route)


class ConfigV3(Body):
    """A setting; null is what the brokers have."""

    name: Name
    value: StrictStr | None = None


class TopicV3(Body):
    """A topic to be made. What is left out is as the brokers are configured."""

    model_config = example(topic_name="orders", partitions_count=3)

    topic_name: Annotated[Name, Field(examples=["orders"])]
    partitions_count: Annotated[int | None, Field(strict=True, ge=1, le=PLACES)] = None
    replication_factor: Annotated[int | None, Field(strict=True, ge=1, le=1000)] = None
    replicas_assignments: Annotated[
        dict[str, list[Index]] | None, Field(description="Not supported: brokers choose.", max_length=0)
    ] = None
    configs: Annotated[list[ConfigV3], Field(default_factory=list, max_length=SETTINGS)]
    validate_only: Annotated[
        StrictBool, Field(description="Say what would come of it, and make nothing.")
    ] = False


class PartitionsV3(Body):
    """How many partitions there are to be."""

    partitions_count: Annotated[int, Field(strict=True, ge=1, le=PLACES)]


@router.get("", response_model=Collection, responses=REFUSALS, summary="Every topic")
def topics(links: Linked, reach: Reached) -> Fields:
    """By name; those that the cluster keeps for itself among them."""
    with reach.brokers(SILENCE_S) as brokers:
        found = [each for each in brokers.metadata().topics if each.name is not None]
    return links.collection(
        "Topic",
        ["topics"],
        (
            described(
                links,
                each.name or "",
                internal=each.is_internal,
                partitions=len(each.partitions),
                replicas=max((len(part.replica_nodes) for part in each.partitions), default=0),
            )
            for each in sorted(found, key=lambda each: each.name or "")
        ),
    )


@router.post(
    "",
    status_code=HTTPStatus.CREATED,
    response_model=Resource,
    responses={HTTPStatus.OK: {"model": Resource, "description": "It could be made"}, **REFUSALS},
    summary="Make a topic",
)
def create_topic(asked: TopicV3, links: Linked, reach: Reached, response: Response) -> Fields:
    """Returns the topic; with `validate_only`, and status 200, the one that would be made."""
    configs = {each.name: each.value for each in asked.configs if each.value is not None}
    if asked.validate_only:
        response.status_code = HTTPStatus.OK
        return _draft(links, reach, asked, configs)
    with naming_a_new_one():
        made = reach.admin.create_topic(
            asked.topic_name,
            partitions=asked.partitions_count,
            replicas=asked.replication_factor,
            configs=configs,
        )
    return _topic(links, made)


@router.get("/{topic_name}", response_model=Resource, responses=REFUSALS, summary="A topic")
def topic(topic_name: TopicName, links: Linked, reach: Reached) -> Fields:
    """How many partitions it has, how many replicas each."""
    return _topic(links, reach.topics.topic(topic_name))


@router.patch("/{topic_name}", response_model=Resource, responses=REFUSALS, summary="Add partitions")
def add_partitions(topic_name: TopicName, asked: PartitionsV3, links: Linked, reach: Reached) -> Fields:
    """There is no way back to fewer."""
    reach.admin.add_partitions(topic_name, asked.partitions_count)
    return _topic(links, reach.topics.topic(topic_name))


@router.delete(
    "/{topic_name}", status_code=HTTPStatus.NO_CONTENT, responses=REFUSALS, summary="Delete a topic"
)
def delete_topic(topic_name: TopicName, links: Linked, reach: Reached) -> Response:
    """With everything in it."""
    del links  # that the cluster is ours has been checked
    reach.admin.delete_topic(topic_name)
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _draft(links: Links, reach: Reach, asked: TopicV3, configs: Mapping[str, str]) -> Fields:
    would_be = reach.topics.check(
        asked.topic_name,
        partitions=asked.partitions_count,
        replicas=asked.replication_factor,
        configs=configs,
    )
    return described(
        links,
        asked.topic_name,
        internal=False,
        partitions=would_be.num_partitions,
        replicas=would_be.replication_factor,
    )


def described(links: Links, name: str, *, internal: bool, partitions: int, replicas: int) -> Fields:
    at = ["topics", name]
    return links.resource(
        "Topic",
        at,
        f"topic={name}",
        {
            "topic_name": name,
            "is_internal": internal,
            "replication_factor": replicas,
            "partitions_count": partitions,
            "partitions": links.related(*at, "partitions"),
            "configs": links.related(*at, "configs"),
            "partition_reassignments": links.related(*at, "partitions", "-", "reassignment"),
        },
    )


def _topic(links: Links, found: Topic) -> Fields:
    return described(
        links,
        found.name,
        internal=found.internal,
        partitions=len(found.partitions),
        replicas=found.replicas,
    )
