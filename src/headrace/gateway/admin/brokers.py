"""Brokers: their state, log directories and settings."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import APIRouter
from pydantic import Field

from headrace.client.admin.topics import Config
from headrace.client.cluster.log_dirs import LogDir, read_log_dirs
from headrace.client.cluster.status import Broker
from headrace.gateway.problems import Problem, answers, bad_request
from headrace.gateway.reach import Reach, ReachDep
from headrace.gateway.rest.bodies import SETTINGS, Body, BrokerId, Name, Value, settings

AnyBroker = TypeVar("AnyBroker")

router = APIRouter(tags=["brokers"], responses=answers(400, 404, 503))


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAnswer:
    """A broker and its log directories; none if it does not answer."""

    broker: Broker
    size_bytes: int
    log_dirs: tuple[LogDir, ...]


class ConfigsBody(Body):
    """Settings to set, and settings to reset to their defaults; all or none."""

    set: Annotated[dict[Name, Value], Field(default_factory=dict, max_length=SETTINGS)]
    unset: Annotated[list[Name], Field(default_factory=list, max_length=SETTINGS)]


def check_changes(to_set: Collection[str], to_unset: Collection[str]) -> None:
    """Raise a Problem if there is nothing to change, or something is to be both set and unset."""
    if not to_set and not to_unset:
        raise bad_request("there is nothing to set or unset")
    if both := sorted({*to_set} & {*to_unset}):
        raise bad_request(f"{both[0]} is both in set and in unset")


@router.get("/brokers")
def brokers(reach: ReachDep) -> list[Broker]:
    """Return the brokers that are alive, and dead ones that have replicas."""
    with reach.cluster() as cluster:
        return list(cluster.status().brokers)


@router.get("/brokers/{broker_id}")
def broker(broker_id: BrokerId, reach: ReachDep) -> BrokerAnswer:
    """Return the broker's directories, each with its replicas and their sizes."""
    found = _get_broker(reach, broker_id)
    nodes = [node for node in reach.brokers.nodes() if node.id == broker_id]
    log_dirs = read_log_dirs(reach.brokers, nodes).get(broker_id, ())
    return BrokerAnswer(
        broker=found, size_bytes=sum(log_dir.size_bytes for log_dir in log_dirs), log_dirs=log_dirs
    )


@router.get("/brokers/{broker_id}/configs")
def broker_configs(broker_id: BrokerId, reach: ReachDep) -> list[Config]:
    """Return every setting with its value and source."""
    _get_broker(reach, broker_id)
    return reach.topics.broker_configs(broker_id)


@router.put("/brokers/{broker_id}/configs")
@router.patch("/brokers/{broker_id}/configs")
def alter_broker_configs(broker_id: BrokerId, body: ConfigsBody, reach: ReachDep) -> list[Config]:
    """Change these settings while the broker runs, and return all of them; others stay as they are."""
    _get_broker(reach, broker_id)
    check_changes(body.set, body.unset)
    reach.admin.alter_broker_configs(broker_id, sets=settings(body.set), unsets=body.unset)
    return reach.topics.broker_configs(broker_id)


def _get_broker(reach: Reach, broker_id: int) -> Broker:
    return one_broker({broker.id: broker for broker in brokers(reach)}, broker_id)


def one_broker(by_id: Mapping[int, AnyBroker], broker_id: int) -> AnyBroker:
    if broker_id not in by_id:
        raise Problem(40404, f"there is no broker {broker_id}, only {', '.join(map(str, by_id))}")
    return by_id[broker_id]
