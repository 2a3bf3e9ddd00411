"""REST proxy, v3: settings of topics, of brokers, and of all brokers together."""

from collections.abc import Callable, Sequence
from typing import Annotated, Final, Literal, NamedTuple

from fastapi import Depends, Path, Response
from pydantic import Field, StrictStr

from headrace.client.admin.topics import ALL_BROKERS, Config
from headrace.gateway.problems import Problem, bad_request
from headrace.gateway.reach import ReachDep
from headrace.gateway.rest.bodies import NO_NUL, SETTINGS, Body, BrokerId, Name, TopicName
from headrace.gateway.rest.v3_resources import Fields, LinksDep, V3Router
from headrace.gateway.rest.v3_topics import broker

router = V3Router()

ConfigName = Annotated[str, Path(description="The setting's name.", max_length=249, pattern=NO_NUL)]
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
    value: StrictStr | None = None


class Owner(NamedTuple):
    """What has the settings, and how to read and change them."""

    fields: Fields
    get: Callable[[], Sequence[Config]]
    alter: Callable[..., None]

    def change(self, changes: Sequence[Change]) -> Response:
        if len({change.name for change in changes}) != len(changes):
            raise bad_request("a setting is named twice")
        sets = {change.name: change.value or "" for change in changes if change.operation != "DELETE"}
        self.get()  # it fails at once if there is no such topic, for which librdkafka would wait
        self.alter(sets=sets, unsets=[change.name for change in changes if change.operation == "DELETE"])
        return Response(status_code=204)


def of_topic(topic_name: TopicName, _links: LinksDep, reach: ReachDep) -> Owner:
    return Owner(
        {"topic_name": topic_name},
        lambda: reach.topics.configs(topic_name),
        lambda **changes: reach.admin.alter_topic_configs(topic_name, **changes),
    )


def of_broker(broker_id: BrokerId, _links: LinksDep, reach: ReachDep) -> Owner:
    broker(broker_id, reach)
    return Owner(
        {"broker_id": broker_id},
        lambda: reach.topics.broker_configs(broker_id),
        lambda **changes: reach.admin.alter_broker_configs(broker_id, **changes),
    )


def of_cluster(_links: LinksDep, reach: ReachDep) -> Owner:
    return Owner({"config_type": "BROKER"}, reach.topics.cluster_configs, reach.topics.alter_cluster_configs)


def _add_routes(path: str, kind: str, owner_of: Callable[..., Owner]) -> None:
    """Add the routes for the settings of one kind of owner."""
    owner_dep = Depends(owner_of)

    @router.lists(kind)
    def configs(owner: Annotated[Owner, owner_dep]) -> list[Fields]:
        """Return each setting with its source."""
        return [owner.fields | _config(found) for found in owner.get()]

    @router.post(f"{path}:alter", status_code=204)
    def alter_configs(owner: Annotated[Owner, owner_dep], body: AlterBody) -> Response:
        """Change all of these settings, or none if one is invalid."""
        return owner.change(body.data)

    @router.shows(kind)
    def config(owner: Annotated[Owner, owner_dep], name: ConfigName) -> Fields:
        """Return its value and source."""
        for found in owner.get():
            if found.name == name:
                return owner.fields | _config(found)
        raise Problem(404, f"there is no setting {name}")

    @router.put(f"{path}/{{name}}", status_code=204)
    def set_config(owner: Annotated[Owner, owner_dep], name: ConfigName, body: ValueBody) -> Response:
        """Set the value, which takes effect at once."""
        if body.value is None:
            raise bad_request(f"there is no value for {name}")
        return owner.change([Change(name=name, value=body.value)])

    @router.delete(f"{path}/{{name}}", status_code=204)
    def reset_config(owner: Annotated[Owner, owner_dep], name: ConfigName) -> Response:
        """Remove the value: that of the brokers' files, or the default, applies again."""
        return owner.change([Change(name=name, operation="DELETE")])


_add_routes("/topics/{topic_name}/configs", "TopicConfig", of_topic)
_add_routes("/brokers/{broker_id}/configs", "BrokerConfig", of_broker)
_add_routes("/broker-configs", "ClusterConfig", of_cluster)


def _config(found: Config) -> Fields:
    source = _SOURCES.get(found.source, "UNKNOWN")
    return {
        "name": found.name,
        "value": found.value,
        "is_default": found.is_default,
        "is_read_only": found.read_only,
        "is_sensitive": False,
        "source": source,
        "synonyms": [{"name": found.name, "value": found.value, "source": source}],
    }
