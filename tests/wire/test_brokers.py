"""Brokers asked all at once, some of whom are slow, gone, or not the same any more."""

import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from headrace.client.errors import Unreachable
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Connection, NoAnswer
from headrace.client.wire.requests import Node
from headrace.protocol.schema.list_groups import ListGroupsRequest
from headrace.testing import Cluster

FOR_EVER_S: Final = 600.0
BELIEVED_S: Final = 20.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as served:
        served.wait_until_in_sync()
        yield served


@pytest.fixture
def brokers(cluster: Cluster) -> Iterator[Brokers]:
    found = Brokers(cluster.bootstrap)
    yield found
    found.close()
    cluster.faults.clear()


def ask(at: Connection) -> Any:
    return at.ask(ListGroupsRequest())


def node(brokers: Brokers, broker_id: int) -> Node:
    return next(each for each in brokers.nodes() if each.id == broker_id)


def test_who_is_silent_is_no_answer_and_the_others_are_heard(cluster: Cluster, brokers: Brokers) -> None:
    with cluster.faults.delay("ListGroups", seconds=FOR_EVER_S, broker_id=2):
        answers = brokers.each(dict.fromkeys(brokers.nodes(), ask))
    assert {each.id: isinstance(answer, NoAnswer) for each, answer in answers.items()} == {
        1: False,
        2: True,
        3: False,
    }
    second, deadline = node(brokers, 2), time.monotonic() + BELIEVED_S
    while isinstance(brokers.each({second: ask})[second], NoAnswer):
        assert time.monotonic() < deadline, "it is not believed again"


@pytest.mark.parametrize("silent", [1, 2, 3])
def test_somebody_else_is_asked_when_the_first_takes_too_long(
    cluster: Cluster, brokers: Brokers, silent: int
) -> None:
    with cluster.faults.delay("Metadata", seconds=FOR_EVER_S, broker_id=silent):
        for _ in range(3):  # each time somebody else is asked first
            assert {each.id for each in brokers.nodes()} == {1, 2, 3}


def test_nobody_who_answers_is_unreachable(cluster: Cluster, brokers: Brokers) -> None:
    with cluster.faults.refuse_connections(), pytest.raises(Unreachable, match="no broker answers at"):
        brokers.nodes()
    assert len(brokers.nodes()) == 3


def test_a_connection_to_a_broker_that_has_been_restarted_is_made_anew(
    cluster: Cluster, brokers: Brokers
) -> None:
    everybody = brokers.nodes()
    before = brokers.each(dict.fromkeys(everybody, ask))
    cluster.restart(3)
    cluster.wait_until_in_sync()
    after = brokers.each(dict.fromkeys(everybody, ask))
    for answers in (before, after):
        assert [each for each in answers.values() if isinstance(each, NoAnswer)] == []


def test_one_address_of_the_cluster_is_enough_also_when_it_has_gone(cluster: Cluster) -> None:
    brokers = Brokers(cluster.bootstrap_of(1))
    assert len(brokers.nodes()) == 3
    with cluster.faults.refuse_connections(broker_id=1):
        assert {2, 3} <= {each.id for each in brokers.nodes()}
    brokers.close()
