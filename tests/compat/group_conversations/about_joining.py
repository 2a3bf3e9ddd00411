"""JoinGroup: who is let in, and who leads."""

from compat.group_conversations.brokers import MAX_SIZE
from compat.group_conversations.classic import Member, assembled, stable, subscription
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import conversation
from compat.group_conversations.talk import Talk

OTHER = subscription("two")


@conversation()
def one_member_joins_and_leads(talk: Talk) -> None:
    a = Member(talk, "a")
    a.join()
    a.join()
    a.sync({a: b"all"})
    a.heartbeat()
    Desk(talk).describe("g")


@conversation()
def two_members_join_and_the_leader_learns_of_both(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", protocols=[("range", OTHER)])
    stable(a, b)
    Desk(talk).describe("g")


@conversation()
def a_third_member_makes_a_new_generation(talk: Talk) -> None:
    a, b, c = Member(talk, "a"), Member(talk, "b"), Member(talk, "c")
    stable(a, b)
    entering = c.enter_call()
    a.heartbeat()
    b.heartbeat()
    again = [a.join_call(), b.join_call()]
    entering.answer()
    for call in again:
        call.answer()
    syncing = [b.sync_call(), c.sync_call()]
    a.sync({a: b"1", b: b"2", c: b"3"})
    for call in syncing:
        call.answer()


@conversation()
def a_member_that_nobody_knows_cannot_join(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    b.join(member_id="nobody")
    stable(a)
    b.join(member_id="nobody")
    Desk(talk).describe("g")


@conversation()
def what_no_group_can_be_called(talk: Talk) -> None:
    a = Member(talk, "a")
    a.join(group_id="")
    a.join(group_id="", member_id="nobody")
    a.sync(group_id="")
    a.heartbeat(group_id="")
    a.leave(group_id="")


@conversation()
def sessions_that_are_too_short_or_too_long(talk: Talk) -> None:
    a = Member(talk, "a")
    for session_ms in (99, 0, -1, 60_001):
        a.join(session_timeout_ms=session_ms)
    a.join(session_timeout_ms=100)


@conversation(levels=range(4, 11))
def members_that_were_told_their_ids_and_have_not_come(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    a.join()
    Desk(talk).describe("g")
    Desk(talk).list()
    a.heartbeat(generation_id=-1)
    a.sync(generation_id=-1)
    a.commit({"three": {0: 1}})
    b.join()
    a.leave()
    a.join()
    b.join()
    Desk(talk).describe("g")


@conversation()
def a_group_that_is_full(talk: Talk) -> None:
    first, *others = [Member(talk, f"m{number}") for number in range(MAX_SIZE)]
    assembled(first, *others)
    late = Member(talk, "late")
    late.join()
    others[0].leave()
    late.enter_call()
    Desk(talk).describe("g")


@conversation(levels=range(4, 11))
def a_group_that_is_full_of_members_that_have_not_come(talk: Talk) -> None:
    members = [Member(talk, f"m{number}") for number in range(MAX_SIZE + 1)]
    for each in members:
        each.join()
    members[0].join()
    for each in members[1:]:
        each.join_call()
    Desk(talk).describe("g")
    members[0].join()
