"""Groups of consumers that have none left become classic ones again."""

from compat.group_conversations.classic import Member, assignment
from compat.group_conversations.consumer import Consumer
from compat.group_conversations.desk import Desk
from compat.group_conversations.migration import look, upgraded
from compat.group_conversations.stories import CONSUMER_LEVELS, conversation
from compat.group_conversations.talk import Talk


@conversation(CONSUMER_LEVELS)
def a_classic_member_joins_an_empty_group_of_consumers(talk: Talk) -> None:
    a, b = Consumer(talk, "a"), Member(talk, "b")
    a.join()
    a.commit({"three": {0: 5}})
    a.leave()
    b.enter()
    b.sync({b: b"all"})
    Desk(talk).fetch("g", {"three": [0]})
    look(talk)


@conversation(CONSUMER_LEVELS)
def the_last_consumer_leaves_and_the_group_is_classic_again(talk: Talk) -> None:
    a, b = Member(talk, "a"), Consumer(talk, "b")
    upgraded(a, b)
    a.join()
    a.sync()
    b.heartbeat()
    a.commit({"three": {0: 5}})
    b.leave()
    look(talk)
    a.heartbeat()
    a.join()
    a.sync({a: assignment(three=[0, 1, 2])})
    a.heartbeat()
    b.heartbeat()
    Desk(talk).fetch("g", {"three": [0]})
    look(talk)


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
    look(talk)
