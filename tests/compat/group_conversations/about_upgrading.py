"""Consumers join classic groups, which become groups of consumers if they can."""

from compat.group_conversations.classic import Member, assembled, assignment, owned, stable, subscription
from compat.group_conversations.consumer import Consumer, settle, shares
from compat.group_conversations.desk import Desk
from compat.group_conversations.migration import look, upgraded
from compat.group_conversations.stories import CONSUMER_LEVELS, conversation
from compat.group_conversations.talk import Talk


def _cooperative(*partitions: int) -> tuple[str, bytes]:
    """A protocol by which only those partitions are given up that go elsewhere."""
    has = owned(three=partitions) if partitions else []
    return "cooperative-sticky", subscription("three", version=1, owned_partitions=has)


@conversation(CONSUMER_LEVELS)
def a_consumer_joins_a_classic_group(talk: Talk) -> None:
    a, b = Member(talk, "a"), Consumer(talk, "b")
    upgraded(a, b)
    look(talk)
    a.heartbeat()
    b.heartbeat()
    a.join()
    a.sync()
    a.heartbeat()
    b.heartbeat()
    b.owns()
    a.heartbeat()
    look(talk)


@conversation(CONSUMER_LEVELS)
def a_cooperative_classic_member_keeps_what_it_keeps(talk: Talk) -> None:
    a, b = Member(talk, "a"), Consumer(talk, "b")
    a.protocols = [_cooperative()]
    upgraded(a, b)
    a.heartbeat()
    a.protocols = [_cooperative(0, 1, 2)]
    a.join()
    a.sync()
    a.heartbeat()
    b.heartbeat()
    a.protocols = [_cooperative(0, 1)]
    a.join()
    a.sync()
    a.heartbeat()
    b.heartbeat()
    look(talk)


@conversation(CONSUMER_LEVELS)
def two_classic_members_and_a_consumer(talk: Talk) -> None:
    a, b, c = Member(talk, "a"), Member(talk, "b"), Consumer(talk, "c")
    assembled(a, b)
    syncing = b.sync_call()
    a.sync({a: assignment(three=[0, 1]), b: assignment(three=[2])})
    syncing.answer()
    c.join()
    look(talk)
    for each in (a, b):
        each.heartbeat()
        each.join()
        each.sync()
    for each in (a, b):
        each.heartbeat()
    c.heartbeat()
    look(talk)


@conversation(CONSUMER_LEVELS)
def a_consumer_joins_a_classic_group_that_everybody_joins(talk: Talk) -> None:
    a, b, c = Member(talk, "a"), Member(talk, "b"), Consumer(talk, "c")
    a.enter()
    a.sync({a: assignment(three=[0, 1, 2])})
    entering = b.enter_call()
    c.join()
    entering.answer()
    Desk(talk).list()
    a.heartbeat()
    b.heartbeat()
    b.join()


@conversation(CONSUMER_LEVELS)
def a_consumer_joins_a_classic_group_that_waits_for_an_assignment(talk: Talk) -> None:
    a, b, c = Member(talk, "a"), Member(talk, "b"), Consumer(talk, "c")
    assembled(a, b)
    syncing = b.sync_call()
    with talk.aside():  # which of the partitions it gets depends on the ids of the others
        c.join()
    talk.state("c", f"owns {len(c.owned['three'])} of three")
    syncing.answer()
    Desk(talk).list()
    a.sync()
    a.heartbeat()


@conversation(CONSUMER_LEVELS)
def a_consumer_joins_an_empty_classic_group(talk: Talk) -> None:
    a, b, desk = Member(talk, "a"), Consumer(talk, "b"), Desk(talk)
    stable(a)
    a.commit({"three": {0: 5}})
    a.leave()
    b.join()
    desk.fetch("g", {"three": [0]})
    look(talk)
    desk.commit("h", {"three": {1: 6}})
    c = Consumer(talk, "c", "h")
    c.join()
    desk.fetch("h", {"three": [1]})


@conversation(CONSUMER_LEVELS)
def classic_groups_that_no_consumer_can_join(talk: Talk) -> None:
    a, b = Member(talk, "a", "connect", protocols=[("default", b"hello")]), Consumer(talk, "b", "connect")
    a.join(protocol_type="connect")
    a.join(protocol_type="connect")
    b.join()
    a.heartbeat()
    c, d = Member(talk, "c", "opaque", protocols=[("range", b"")]), Consumer(talk, "d", "opaque")
    stable(c)
    d.join()
    c.heartbeat()
    d.heartbeat(member_epoch=1)
    d.leave()


@conversation(CONSUMER_LEVELS)
def a_static_classic_member_becomes_a_consumer(talk: Talk) -> None:
    a, b = Member(talk, "a", instance="i"), Member(talk, "b", instance="k")
    assembled(a, b)
    syncing = b.sync_call()
    a.sync({a: assignment(three=[0, 1]), b: assignment(three=[2])})
    syncing.answer()
    new = Consumer(talk, "new", instance="k")
    new.join()
    look(talk)
    a.heartbeat()
    b.heartbeat()
    new.heartbeat()
    new.owns()


@conversation(CONSUMER_LEVELS)
def all_become_consumers(talk: Talk) -> None:
    a, b = Member(talk, "a"), Consumer(talk, "b")
    upgraded(a, b)
    a.leave()
    c = Consumer(talk, "c")
    with talk.aside():  # which partitions go where is up to the assignor
        c.join()
        settle(b, c)
    talk.state("all", shares(b, c))
    Desk(talk).list()
