"""Classic members in a group of consumers: they join, sync, heartbeat, commit and leave as ever."""

from compat.group_conversations.classic import Member, protocols_of
from compat.group_conversations.consumer import Consumer
from compat.group_conversations.desk import Desk
from compat.group_conversations.migration import look, upgraded
from compat.group_conversations.stories import CONSUMER_LEVELS, conversation
from compat.group_conversations.talk import Talk


@conversation(CONSUMER_LEVELS)
def a_classic_member_joins_a_group_of_consumers(talk: Talk) -> None:
    a, b = Consumer(talk, "a"), Member(talk, "b")
    a.join()
    a.owns()
    b.join()
    b.join()
    b.sync()
    b.heartbeat()
    look(talk)
    a.heartbeat()
    a.owns()
    b.heartbeat()
    b.join()
    b.sync()
    b.heartbeat()
    a.heartbeat()
    look(talk)


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
    look(talk)


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
    look(talk)
