"""REST proxy, v3: settings of topics, of brokers, and of all brokers together."""

from collections.abc import Callable, Sequence
from typing import Annotated, Final, Literal, NamedTuple

from fastapi import Depends, Path, Response
from pydantic import Field, StrictStr

from headrace.client.admin.topics import ALL_BROKERS, Config
from headrace.gateway.problems import Problem, bad_request
from headrace.gateway.reach import ReachDep
from headrace.gateway.rest.bodies import NO_NUL, SETTINGS, Body, BrokerId, Name, TopicName
from headrace.gateway.rest.v3_resources import (
    Collection,
    Fields,
    Links,
    LinksDep,
    Resource,
    get_broker,
    v3_router,
)

router = v3_router()

ConfigName = Annotated[
    str, Path(description="The setting's name.", examples=["retention.ms"], max_length=249, pattern=NO_NUL)
]
_SOURCES: Final = {
    "topic": "DYNAMIC_TOPIC_CONFIG",
    "broker": "DYNAMIC_BROKER_CONFIG",
    ALL_BROKERS: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "broker's file": "STATIC_BROKER_CONFIG",
    "default": "DEFAULT_CONFIG",
}


class Change(Body):
    """A setting to set, or with DELETE to reset to its default."""

    name: Name
    value: StrictStr | None = None
    operation: Literal["SET", "DELETE"] | None = None


class AlterBody(Body):
    """Settings to change: all or none."""

    data: Annotated[list[Change], Field(min_length=1, max_length=SETTINGS)]


class ValueBody(Body):
    """The new value of a setting."""

    value: StrictStr | None = None


class Owner(NamedTuple):
    """What has the settings, and how to read and change them."""

    links: Links
    kind: str
    path: tuple[object, ...]
    fields: Fields
    get: Callable[[], Sequence[Config]]
    alter: Callable[..., None]


def of_topic(topic_name: TopicName, links: LinksDep, reach: ReachDep) -> Owner:
    return Owner(
        links,
        "TopicConfig",
        ("topics", topic_name, "configs"),
        {"topic_name": topic_name},
        lambda: reach.topics.configs(topic_name),
        lambda **changes: reach.admin.alter_topic_configs(topic_name, **changes),
    )


def of_broker(broker_id: BrokerId, links: LinksDep, reach: ReachDep) -> Owner:
    get_broker(reach.metadata(), broker_id)
    return Owner(
        links,
        "BrokerConfig",
        ("brokers", broker_id, "configs"),
        {"broker_id": broker_id},
        lambda: reach.topics.broker_configs(broker_id),
        lambda **changes: reach.admin.alter_broker_configs(broker_id, **changes),
    )


def of_cluster(links: LinksDep, reach: ReachDep) -> Owner:
    return Owner(
        links,
        "ClusterConfig",
        ("broker-configs",),
        {"config_type": "BROKER"},
        reach.topics.cluster_configs,
        reach.topics.alter_cluster_configs,
    )


def _add_routes(path: str, owner_of: Callable[..., Owner], of: str, default: str) -> None:
    """Add the routes for the settings of one kind of owner."""

    @router.get(
        path, summary=f"List the settings of {of}", description="Return each setting with its source."
    )
    def configs(owner: Annotated[Owner, Depends(owner_of)]) -> Collection:
        found = owner.get()
        return owner.links.collection(owner.kind, owner.path, (_config(owner, each) for each in found))

    @router.post(
        f"{path}:alter",
        status_code=204,
        summary=f"Change settings of {of}",
        description="Change all of these settings, or none if one is invalid.",
    )
    def alter_configs(owner: Annotated[Owner, Depends(owner_of)], body: AlterBody) -> Response:
        return _alter(owner, body.data)

    @router.get(
        f"{path}/{{name}}", summary=f"Get a setting of {of}", description="Return its value and source."
    )
    def config(owner: Annotated[Owner, Depends(owner_of)], name: ConfigName) -> Resource:
        for each in owner.get():
            if each.name == name:
                return _config(owner, each)
        raise Problem(404, f"there is no setting {name}")

    @router.put(
        f"{path}/{{name}}",
        status_code=204,
        summary=f"Set a setting of {of}",
        description="Set the value, which takes effect at once.",
    )
    def set_config(owner: Annotated[Owner, Depends(owner_of)], name: ConfigName, body: ValueBody) -> Response:
        if body.value is None:
            raise bad_request(f"there is no value for {name}")
        return _alter(owner, [Change(name=name, value=body.value)])

    @router.delete(
        f"{path}/{{name}}",
        status_code=204,
        summary=f"Reset a setting of {of}",
        description=f"Remove the value; {default} applies again.",
    )
    def reset_config(owner: Annotated[Owner, Depends(owner_of)], name: ConfigName) -> Response:
        return _alter(owner, [Change(name=name, operation="DELETE")])


_add_routes("/topics/{topic_name}/configs", of_topic, "a topic", "the brokers' value")
_add_routes("/brokers/{broker_id}/configs", of_broker, "a broker", "the value in its file or the default")
_add_routes("/broker-configs", of_cluster, "all brokers", "the value in each broker's file or the default")


def _alter(owner: Owner, changes: Sequence[Change]) -> Response:
    if len({change.name for change in changes}) != len(changes):
        raise bad_request("a setting is named twice")
    sets = {change.name: change.value or "" for change in changes if change.operation != "DELETE"}
    owner.get()  # it fails at once if there is no such topic, for which librdkafka would wait
    owner.alter(sets=sets, unsets=[change.name for change in changes if change.operation == "DELETE"])
    return Response(status_code=204)


def _config(owner: Owner, found: Config) -> Resource:
    source = _SOURCES.get(found.source, "UNKNOWN")
    return owner.links.resource(
        owner.kind,
        [*owner.path, found.name],
        **owner.fields,
        name=found.name,
        value=found.value,
        is_default=found.is_default,
        is_read_only=found.read_only,
        is_sensitive=False,
        source=source,
        synonyms=[{"name": found.name, "value": found.value, "source": source}],
    )
