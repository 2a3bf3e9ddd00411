"""REST proxy, v3: settings of topics and brokers, all of them or one by one."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, NamedTuple

from fastapi import APIRouter, Path, Response
from pydantic import Field, StrictStr

from headrace.client.admin.topics import ALL_BROKERS, Config
from headrace.http.gateway.asking import NO_NUL, SETTINGS, Body, BrokerId, Name, TopicName
from headrace.http.gateway.v3_envelope import (
    REFUSALS,
    Collection,
    Fields,
    Linked,
    Links,
    Resource,
    V3Route,
)
from headrace.http.problems import Problem
from headrace.http.reach import SILENCE_S, Reach, Reached

router = APIRouter(prefix="/v3/clusters/{cluster_id}", tags=["REST proxy v3"], route_class=V3Route)

ConfigName = Annotated[
    str, Path(description="A setting's name.", examples=["retention.ms"], max_length=249, pattern=NO_NUL)
]
NOTHING: Final[dict[str, Any]] = {"status_code": HTTPStatus.NO_CONTENT, "responses": REFUSALS}
_TOPIC: Final = "/topics/{topic_name}/configs"
_BROKER: Final = "/brokers/{broker_id}/configs"


class Change(Body):
    """A setting to be set, or with DELETE to be given back."""

    name: Name
    value: StrictStr | None = None
    operation: Literal["SET", "DELETE"] | None = None


class AlterBody(Body):
    """Settings to be changed: all or none."""

    data: Annotated[list[Change], Field(min_length=1, max_length=SETTINGS)]


class ValueBody(Body):
    """A setting's new value."""

    value: StrictStr | None = None


class Owner(NamedTuple):
    """Whose settings, and how they are got and changed."""

    kind: str
    path: tuple[object, ...]
    name: str  # what comes before a setting's resource name
    fields: Fields
    get: Callable[[], Sequence[Config]]
    alter: Callable[..., None]


def of_topic(reach: Reach, topic: str) -> Owner:
    return Owner(
        "TopicConfig",
        ("topics", topic, "configs"),
        f"topic={topic}/",
        {"topic_name": topic},
        lambda: reach.topics.configs(topic),
        lambda **changes: reach.admin.alter_topic_configs(topic, **changes),
    )


def of_broker(reach: Reach, broker_id: int) -> Owner:
    with reach.brokers(SILENCE_S) as brokers:
        there = sorted(each.node_id for each in brokers.metadata().brokers)
    if broker_id not in there:
        said = f"there is no broker {broker_id}, only {', '.join(map(str, there))}"
        raise Problem(HTTPStatus.NOT_FOUND, 40404, said)
    return Owner(
        "BrokerConfig",
        ("brokers", broker_id, "configs"),
        f"broker={broker_id}/",
        {"broker_id": broker_id},
        lambda: reach.topics.broker_configs(broker_id),
        lambda **changes: reach.admin.alter_broker_configs(broker_id, **changes),
    )


@router.get(_TOPIC, response_model=Collection, responses=REFUSALS, summary="A topic's settings")
def topic_configs(topic_name: TopicName, links: Linked, reach: Reached) -> Fields:
    """All of them, and who has set each."""
    return every(links, of_topic(reach, topic_name))


@router.post(f"{_TOPIC}:alter", **NOTHING, summary="Change a topic's settings")
def alter_topic(topic_name: TopicName, asked: AlterBody, links: Linked, reach: Reached) -> Response:
    """All of them, or none if one cannot be."""
    return alter(links, of_topic(reach, topic_name), asked.data)


@router.get(f"{_TOPIC}/{{name}}", response_model=Resource, responses=REFUSALS, summary="A topic's setting")
def topic_config(topic_name: TopicName, name: ConfigName, links: Linked, reach: Reached) -> Fields:
    """Its value, and who has set it."""
    return one(links, of_topic(reach, topic_name), name)


@router.put(f"{_TOPIC}/{{name}}", **NOTHING, summary="Set a topic's setting")
def set_topic_config(
    topic_name: TopicName, name: ConfigName, asked: ValueBody, links: Linked, reach: Reached
) -> Response:
    """From now on."""
    return alter(links, of_topic(reach, topic_name), [change_of(name, asked)])


@router.delete(f"{_TOPIC}/{{name}}", **NOTHING, summary="Give a topic's setting back")
def reset_topic_config(topic_name: TopicName, name: ConfigName, links: Linked, reach: Reached) -> Response:
    """It is what the brokers have from now on."""
    return alter(links, of_topic(reach, topic_name), [Change(name=name, operation="DELETE")])


@router.get(_BROKER, response_model=Collection, responses=REFUSALS, summary="A broker's settings")
def broker_configs(broker_id: BrokerId, links: Linked, reach: Reached) -> Fields:
    """All of them, and who has set each."""
    return every(links, of_broker(reach, broker_id))


@router.post(f"{_BROKER}:alter", **NOTHING, summary="Change a broker's settings")
def alter_broker(broker_id: BrokerId, asked: AlterBody, links: Linked, reach: Reached) -> Response:
    """All of them, or none if one cannot be."""
    return alter(links, of_broker(reach, broker_id), asked.data)


@router.get(f"{_BROKER}/{{name}}", response_model=Resource, responses=REFUSALS, summary="A broker's setting")
def broker_config(broker_id: BrokerId, name: ConfigName, links: Linked, reach: Reached) -> Fields:
    """Its value, and who has set it."""
    return one(links, of_broker(reach, broker_id), name)


@router.put(f"{_BROKER}/{{name}}", **NOTHING, summary="Set a broker's setting")
def set_broker_config(
    broker_id: BrokerId, name: ConfigName, asked: ValueBody, links: Linked, reach: Reached
) -> Response:
    """While it runs."""
    return alter(links, of_broker(reach, broker_id), [change_of(name, asked)])


@router.delete(f"{_BROKER}/{{name}}", **NOTHING, summary="Give a broker's setting back")
def reset_broker_config(broker_id: BrokerId, name: ConfigName, links: Linked, reach: Reached) -> Response:
    """It is what its file says, or the default."""
    return alter(links, of_broker(reach, broker_id), [Change(name=name, operation="DELETE")])


def change_of(name: str, asked: ValueBody) -> Change:
    """What is asked for by giving a setting a value."""
    if asked.value is None:
        raise Problem(HTTPStatus.BAD_REQUEST, 40002, f"there is no value for {name}")
    return Change(name=name, value=asked.value)


def every(links: Links, owner: Owner) -> Fields:
    """All settings, as a list."""
    found = owner.get()
    return links.collection(owner.kind, owner.path, (_config(links, owner, each) for each in found))


def one(links: Links, owner: Owner, name: str) -> Fields:
    """A setting; a Problem if there is none of that name."""
    for each in owner.get():
        if each.name == name:
            return _config(links, owner, each)
    raise Problem(HTTPStatus.NOT_FOUND, 404, f"there is no setting {name}")


def alter(_links: Links, owner: Owner, changes: Sequence[Change]) -> Response:
    """All changes or none; `_links` have been asked for so that the cluster is known to be ours."""
    if len({each.name for each in changes}) != len(changes):
        raise Problem(HTTPStatus.BAD_REQUEST, 40002, "a setting is there twice")
    sets = {each.name: each.value or "" for each in changes if each.operation != "DELETE"}
    owner.get()  # librdkafka would wait for a topic that is not there
    owner.alter(sets=sets, unsets=[each.name for each in changes if each.operation == "DELETE"])
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _config(links: Links, owner: Owner, found: Config) -> Fields:
    source = _SOURCES.get(found.source, "UNKNOWN")
    return links.resource(
        owner.kind,
        [*owner.path, found.name],
        f"{owner.name}config={found.name}",
        {
            **owner.fields,
            "name": found.name,
            "value": found.value,
            "is_default": found.is_default,
            "is_read_only": found.read_only,
            "is_sensitive": False,
            "source": source,
            "synonyms": [{"name": found.name, "value": found.value, "source": source}],
        },
    )


_SOURCES: Final = {
    "topic": "DYNAMIC_TOPIC_CONFIG",
    "broker": "DYNAMIC_BROKER_CONFIG",
    ALL_BROKERS: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "broker's file": "STATIC_BROKER_CONFIG",
    "default": "DEFAULT_CONFIG",
}
