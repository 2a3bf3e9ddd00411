"""REST proxy, v3: settings that all brokers have been given while they run."""

from typing import Final

from fastapi import APIRouter, Response

from headrace.http.gateway.v3_configs import (
    NOTHING,
    AlterBody,
    Change,
    ConfigName,
    Owner,
    ValueBody,
    alter,
    change_of,
    every,
    one,
)
from headrace.http.gateway.v3_envelope import REFUSALS, Collection, Fields, Linked, Resource, V3Route
from headrace.http.reach import Reach, Reached

router = APIRouter(prefix="/v3/clusters/{cluster_id}", tags=["REST proxy v3"], route_class=V3Route)

_ALL: Final = "/broker-configs"


def of_cluster(reach: Reach) -> Owner:
    return Owner(
        "ClusterConfig",
        ("broker-configs",),
        "broker-",
        {"config_type": "BROKER"},
        reach.topics.cluster_configs,
        reach.topics.alter_cluster_configs,
    )


@router.get(_ALL, response_model=Collection, responses=REFUSALS, summary="Settings of all brokers")
def cluster_configs(links: Linked, reach: Reached) -> Fields:
    """Those that somebody has set for all of them while they run; none, to begin with."""
    return every(links, of_cluster(reach))


@router.post(f"{_ALL}:alter", **NOTHING, summary="Change settings of all brokers")
def alter_cluster(asked: AlterBody, links: Linked, reach: Reached) -> Response:
    """All of them, or none if one cannot be. A broker's own setting still counts more."""
    return alter(links, of_cluster(reach), asked.data)


@router.get(
    f"{_ALL}/{{name}}", response_model=Resource, responses=REFUSALS, summary="A setting of all brokers"
)
def cluster_config(name: ConfigName, links: Linked, reach: Reached) -> Fields:
    """Its value, if it was set for all of them."""
    return one(links, of_cluster(reach), name)


@router.put(f"{_ALL}/{{name}}", **NOTHING, summary="Set a setting for all brokers")
def set_cluster_config(name: ConfigName, asked: ValueBody, links: Linked, reach: Reached) -> Response:
    """While they run."""
    return alter(links, of_cluster(reach), [change_of(name, asked)])


@router.delete(f"{_ALL}/{{name}}", **NOTHING, summary="Take a setting of all brokers back")
def reset_cluster_config(name: ConfigName, links: Linked, reach: Reached) -> Response:
    """It is what each broker's file says, or the default."""
    return alter(links, of_cluster(reach), [Change(name=name, operation="DELETE")])
