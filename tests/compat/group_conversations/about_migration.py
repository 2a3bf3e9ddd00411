"""Classic members and consumers in one group: the way up, life together, the way down."""

from compat.group_conversations.classic import (
    Member,
    assembled,
    assignment,
    owned,
    protocols_of,
    stable,
    subscription,
)
from compat.group_conversations.consumer import Consumer, settle, shares
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import CONSUMER_LEVELS, conversation
from compat.group_conversations.talk import Talk


def upgraded(a: Member, b: Consumer) -> None:
    """A classic group of one member, which has everything, and a consumer that joins it."""
    a.enter()
    a.sync({a: assignment(three=[0, 1, 2])})
    b.join()


def _cooperative(*partitions: int) -> tuple[str, bytes]:
    """A protocol by which only those partitions are given up that go elsewhere."""
    has = owned(three=partitions) if partitions else []
    return "cooperative-sticky", subscription("three", version=1, owned_partitions=has)


def _look(talk: Talk) -> None:
    desk = Desk(talk)
    desk.describe_consumers("g")
    desk.describe("g")
    desk.list()


@conversation(CONSUMER_LEVELS)
def a_consumer_joins_a_classic_group(talk: Talk) -> None:
    a, b = Member(talk, "a"), Consumer(talk, "b")
    upgraded(a, b)
    _look(talk)
    a.heartbeat()
    b.heartbeat()
    a.join()
    a.sync()
    a.heartbeat()
    b.heartbeat()
    b.owns()
    a.heartbeat()
    _look(talk)


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
    _look(talk)


@conversation(CONSUMER_LEVELS)
def two_classic_members_and_a_consumer(talk: Talk) -> None:
    a, b, c = Member(talk, "a"), Member(talk, "b"), Consumer(talk, "c")
    assembled(a, b)
    syncing = b.sync_call()
    a.sync({a: assignment(three=[0, 1]), b: assignment(three=[2])})
    syncing.answer()
    c.join()
    _look(talk)
    for each in (a, b):
        each.heartbeat()
        each.join()
        each.sync()
    for each in (a, b):
        each.heartbeat()
    c.heartbeat()
    _look(talk)


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
    _look(talk)
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
def a_classic_member_joins_a_group_of_consumers(talk: Talk) -> None:
    a, b = Consumer(talk, "a"), Member(talk, "b")
    a.join()
    a.owns()
    b.join()
    b.join()
    b.sync()
    b.heartbeat()
    _look(talk)
    a.heartbeat()
    a.owns()
    b.heartbeat()
    b.join()
    b.sync()
    b.heartbeat()
    a.heartbeat()
    _look(talk)


@conversation(CONSUMER_LEVELS)
def classic_members_that_do_not_fit_in_a_group_of_consumers(talk: Talk) -> None:
    a, b = Consumer(talk, "a"), Member(talk, "b")
    a.join()
    b.join(protocol_type="connect")
    b.join(protocols=[])
    b.join(protocol_type="")
    b.join(session_timeout_ms=1)
    b.heartbeat(member_id=a.member_id, generation_id=a.epoch)
    b.sync(member_id=a.member_id, generation_id=a.epoch, protocol_name="range")
    b.leave(member_id=a.member_id)
    b.heartbeat(member_id="nobody")
    b.sync(member_id="nobody", protocol_name="range")
    b.join()
    with talk.aside():  # Kafka fails with an error of its own, and we say INCONSISTENT_GROUP_PROTOCOL
        b.join(protocols=protocols_of(("range", b"")))
    b.heartbeat()
    a.heartbeat()
    Desk(talk).describe_consumers("g")


@conversation(CONSUMER_LEVELS)
def a_classic_member_joins_an_empty_group_of_consumers(talk: Talk) -> None:
    a, b = Consumer(talk, "a"), Member(talk, "b")
    a.join()
    a.commit({"three": {0: 5}})
    a.leave()
    b.enter()
    b.sync({b: b"all"})
    Desk(talk).fetch("g", {"three": [0]})
    _look(talk)


@conversation(CONSUMER_LEVELS)
def classic_heartbeats_and_syncs_that_do_not_fit(talk: Talk) -> None:
    a, b = Member(talk, "a"), Consumer(talk, "b")
    upgraded(a, b)
    a.heartbeat(generation_id=a.generation + 7)
    a.sync(generation_id=a.generation + 7)
    a.sync(protocol_name="sticky")
    a.sync(protocol_type="connect")
    a.heartbeat()
    a.sync()
    a.join()
    a.heartbeat()
    a.heartbeat(generation_id=a.generation - 1)
    a.sync(generation_id=a.generation - 1)
    a.sync()
    a.sync()
    a.heartbeat(group_instance_id="who")


@conversation(CONSUMER_LEVELS)
def a_classic_member_of_an_upgraded_group_commits(talk: Talk) -> None:
    a, b = Member(talk, "a"), Consumer(talk, "b")
    upgraded(a, b)
    a.commit({"three": {0: 1}})
    a.join()
    a.commit({"three": {0: 2}})
    with talk.aside():  # Kafka takes it from 4.3 on, as it does from consumers (KIP-1251)
        a.commit({"three": {0: 3}}, generation_id_or_member_epoch=a.generation - 1)
    a.commit({"three": {0: 4}}, generation_id_or_member_epoch=a.generation + 1)
    a.sync()
    a.commit({"three": {0: 5}})
    b.commit({"three": {1: 6}})
    Desk(talk).fetch("g", {"three": [0, 1]})


@conversation(CONSUMER_LEVELS)
def a_classic_member_leaves_an_upgraded_group(talk: Talk) -> None:
    a, b = Member(talk, "a"), Consumer(talk, "b")
    upgraded(a, b)
    a.leave()
    b.heartbeat()
    b.owns()
    a.heartbeat()
    a.leave()
    _look(talk)


@conversation(CONSUMER_LEVELS)
def the_last_consumer_leaves_and_the_group_is_classic_again(talk: Talk) -> None:
    a, b = Member(talk, "a"), Consumer(talk, "b")
    upgraded(a, b)
    a.join()
    a.sync()
    b.heartbeat()
    a.commit({"three": {0: 5}})
    b.leave()
    _look(talk)
    a.heartbeat()
    a.join()
    a.sync({a: assignment(three=[0, 1, 2])})
    a.heartbeat()
    b.heartbeat()
    Desk(talk).fetch("g", {"three": [0]})
    _look(talk)


@conversation(CONSUMER_LEVELS)
def the_last_consumer_leaves_and_two_classic_members_stay(talk: Talk) -> None:
    a, b, c = Consumer(talk, "a"), Member(talk, "b"), Member(talk, "c", instance="k")
    a.join()
    b.enter()
    b.sync()
    c.join()
    c.sync()
    b.heartbeat()
    a.leave()
    Desk(talk).describe("g")
    c.heartbeat()
    with talk.aside():  # either of them may be made the leader
        again = c.join_call()
        b.join()
        again.answer()
    c.heartbeat()
    b.heartbeat()


@conversation(CONSUMER_LEVELS)
def a_static_classic_member_becomes_a_consumer(talk: Talk) -> None:
    a, b = Member(talk, "a", instance="i"), Member(talk, "b", instance="k")
    assembled(a, b)
    syncing = b.sync_call()
    a.sync({a: assignment(three=[0, 1]), b: assignment(three=[2])})
    syncing.answer()
    new = Consumer(talk, "new", instance="k")
    new.join()
    _look(talk)
    a.heartbeat()
    b.heartbeat()
    new.heartbeat()
    new.owns()


@conversation(CONSUMER_LEVELS)
def a_static_consumer_becomes_a_classic_member(talk: Talk) -> None:
    a, b = Consumer(talk, "a"), Consumer(talk, "b", instance="k")
    a.join()
    b.join()
    for _ in range(2):
        a.owns()
        b.owns()
    b.leave(member_epoch=-2)
    old = Member(talk, "old", instance="k")
    old.join()
    old.sync()
    old.heartbeat()
    _look(talk)


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


@conversation(CONSUMER_LEVELS)
def the_only_consumer_becomes_a_classic_member(talk: Talk) -> None:
    a = Consumer(talk, "a", instance="k")
    a.join()
    a.leave(member_epoch=-2)
    old = Member(talk, "old", instance="k")
    old.join()
    Desk(talk).list()
    old.heartbeat()
    old.join()
    old.sync({old: assignment(three=[0, 1, 2])})
    _look(talk)
