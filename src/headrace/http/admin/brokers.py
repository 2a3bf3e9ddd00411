"""Brokers one by one: what each keeps on its disks, and its settings."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from headrace.client.admin.topics import Config
from headrace.client.cluster.log_dirs import LogDir, read_log_dirs
from headrace.client.cluster.status import Broker
from headrace.http.gateway.asking import SETTINGS, Body, BrokerId, Name, Value, settings
from headrace.http.problems import Problem, answers
from headrace.http.reach import Reach, Reached

router = APIRouter(tags=["brokers"])
_REFUSALS = answers(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerAnswer:
    """A broker and its directories; none if it does not answer."""

    broker: Broker
    size_bytes: int
    log_dirs: tuple[LogDir, ...]


class ConfigsBody(Body):
    """Settings to set, and settings to give back to whoever else has a word in it; all or none."""

    set: Annotated[
        dict[Name, Value],
        Field(default_factory=dict, max_length=SETTINGS, examples=[{"retention.ms": "86400000"}]),
    ]
    unset: Annotated[
        list[Name], Field(default_factory=list, max_length=SETTINGS, examples=[["cleanup.policy"]])
    ]


@router.get("/brokers", responses=answers(HTTPStatus.SERVICE_UNAVAILABLE), summary="Every broker")
def brokers(reach: Reached) -> list[Broker]:
    """Those that are alive, and those that are not and have replicas on them."""
    with reach.cluster() as cluster:
        return list(cluster.status().brokers)


@router.get("/brokers/{broker_id}", responses=_REFUSALS, summary="A broker and what is on its disks")
def broker(broker_id: BrokerId, reach: Reached) -> BrokerAnswer:
    """Its directories, each with its replicas and what they take."""
    found = the_broker(reach, broker_id)
    nodes = [each for each in reach.live.nodes() if each.id == broker_id]
    log_dirs = read_log_dirs(reach.live, nodes).get(broker_id, ())
    return BrokerAnswer(broker=found, size_bytes=sum(each.size_bytes for each in log_dirs), log_dirs=log_dirs)


@router.get("/brokers/{broker_id}/configs", responses=_REFUSALS, summary="A broker's settings")
def broker_configs(broker_id: BrokerId, reach: Reached) -> list[Config]:
    """Every setting, its value, and who said so."""
    the_broker(reach, broker_id)
    return reach.topics.broker_configs(broker_id)


@router.put("/brokers/{broker_id}/configs", responses=_REFUSALS, summary="Change a broker's settings")
@router.patch("/brokers/{broker_id}/configs", responses=_REFUSALS, summary="Change a broker's settings")
def alter_broker_configs(broker_id: BrokerId, asked: ConfigsBody, reach: Reached) -> list[Config]:
    """While it runs; what is not named stays as it is. Returns every setting."""
    the_broker(reach, broker_id)
    check(asked)
    reach.admin.alter_broker_configs(broker_id, sets=settings(asked.set), unsets=asked.unset)
    return reach.topics.broker_configs(broker_id)


def check(asked: ConfigsBody) -> None:
    """Problem if the request asks for nothing, or for two things that exclude each other."""
    if not asked.set and not asked.unset:
        raise Problem(HTTPStatus.BAD_REQUEST, 40002, "there is nothing to set or unset")
    if both := sorted(set(asked.set) & set(asked.unset)):
        raise Problem(HTTPStatus.BAD_REQUEST, 40002, f"{both[0]} is to be set and unset at once")


def the_broker(reach: Reach, broker_id: int) -> Broker:
    with reach.cluster() as cluster:
        there = {each.id: each for each in cluster.status().brokers}
    if broker_id not in there:
        only = ", ".join(map(str, there))
        raise Problem(HTTPStatus.NOT_FOUND, 40404, f"there is no broker {broker_id}, only {only}")
    return there[broker_id]
