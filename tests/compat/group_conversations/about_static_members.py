"""Members with an instance id, which keep their place while they restart."""

from compat.group_conversations.classic import Member, assembled, stable, subscription
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import conversation
from compat.group_conversations.talk import Talk

STATIC_LEVELS = range(5, 11)


@conversation(STATIC_LEVELS)
def a_static_member_needs_no_second_request_to_join(talk: Talk) -> None:
    a, b = Member(talk, "a", instance="i"), Member(talk, "b", instance="k")
    stable(a, b)
    a.heartbeat()
    Desk(talk).describe("g")


@conversation(STATIC_LEVELS)
def a_static_follower_comes_back_and_nobody_notices(talk: Talk) -> None:
    a, b, back = (
        Member(talk, "a", instance="i"),
        Member(talk, "b", instance="k"),
        Member(talk, "back", instance="k"),
    )
    stable(a, b)
    back.join()
    a.heartbeat()
    back.sync()
    back.heartbeat()
    Desk(talk).describe("g")


@conversation(STATIC_LEVELS)
def a_static_leader_comes_back_and_need_not_assign_again(talk: Talk) -> None:
    a, b, back = Member(talk, "a", instance="i"), Member(talk, "b"), Member(talk, "back", instance="i")
    stable(a, b)
    back.join()
    b.heartbeat()
    back.sync()
    again = back.join_call()
    b.heartbeat()
    b.join()
    again.answer()


@conversation(STATIC_LEVELS)
def a_static_member_comes_back_with_another_subscription_and_the_same_protocol(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="k")
    back = Member(talk, "back", instance="k", protocols=[("range", subscription("one"))])
    stable(a, b)
    back.join()
    a.heartbeat()
    back.sync()
    Desk(talk).describe("g")


@conversation(STATIC_LEVELS)
def a_static_member_comes_back_and_another_protocol_has_to_be_chosen(talk: Talk) -> None:
    both = [("range", subscription("three")), ("roundrobin", subscription("three"))]
    a, b = Member(talk, "a", protocols=both), Member(talk, "b", instance="k", protocols=both)
    back = Member(talk, "back", instance="k", protocols=both[1:])
    stable(a, b)
    again = back.join_call()
    a.heartbeat()
    a.join()
    again.answer()
    syncing = back.sync_call()
    a.sync({a: b"1", back: b"2"})
    syncing.answer()
    Desk(talk).describe("g")


@conversation(STATIC_LEVELS)
def a_static_member_that_was_replaced_is_fenced(talk: Talk) -> None:
    a, b, back = Member(talk, "a"), Member(talk, "b", instance="k"), Member(talk, "back", instance="k")
    stable(a, b)
    back.join()
    b.heartbeat()
    b.sync()
    b.join()
    b.commit({"three": {0: 5}})
    b.leave()
    a.heartbeat()
    back.heartbeat()


@conversation(STATIC_LEVELS)
def an_instance_that_nobody_knows(talk: Talk) -> None:
    a = Member(talk, "a")
    stable(a)
    a.heartbeat(group_instance_id="who")
    a.sync(group_instance_id="who")
    a.join(group_instance_id="who")
    a.commit({"three": {0: 5}}, group_instance_id="who")
    a.heartbeat(group_instance_id="who", member_id="nobody")
    a.join(group_instance_id="who", member_id="nobody")
    a.heartbeat()


@conversation(STATIC_LEVELS)
def a_static_member_that_forgets_to_say_so(talk: Talk) -> None:
    a = Member(talk, "a", instance="i")
    stable(a)
    a.heartbeat(group_instance_id=None)
    a.commit({"three": {0: 5}}, group_instance_id=None)
    a.sync(group_instance_id=None)
    a.join(group_instance_id=None)


@conversation(STATIC_LEVELS)
def a_static_member_comes_back_while_everybody_joins(talk: Talk) -> None:
    a, b, c = Member(talk, "a"), Member(talk, "b", instance="k"), Member(talk, "c")
    back = Member(talk, "back", instance="k")
    stable(a, b)
    entering = c.enter_call()
    waiting = b.join_call()
    again = back.join_call()
    waiting.answer()
    a.join()
    again.answer()
    entering.answer()


@conversation(STATIC_LEVELS)
def a_static_member_comes_back_while_the_assignment_is_awaited(talk: Talk) -> None:
    a, b, back = Member(talk, "a"), Member(talk, "b", instance="k"), Member(talk, "back", instance="k")
    assembled(a, b)
    waiting = b.sync_call()
    again = back.join_call()
    waiting.answer()
    a.heartbeat()
    a.join()
    again.answer()


@conversation(STATIC_LEVELS)
def a_static_leader_comes_back_while_the_assignment_is_awaited(talk: Talk) -> None:
    a, b, back = Member(talk, "a", instance="i"), Member(talk, "b"), Member(talk, "back", instance="i")
    assembled(a, b)
    again = back.join_call()
    b.heartbeat()
    b.join()
    again.answer()


@conversation(STATIC_LEVELS)
def two_static_members_of_one_name_join_together(talk: Talk) -> None:
    a, b, twin = Member(talk, "a"), Member(talk, "b", instance="k"), Member(talk, "twin", instance="k")
    stable(a)
    first, second = b.join_call(), twin.join_call()
    first.answer()
    a.join()
    second.answer()


@conversation(STATIC_LEVELS)
def a_static_member_is_removed_by_its_instance(talk: Talk) -> None:
    a, b = Member(talk, "a", instance="i"), Member(talk, "b", instance="k")
    stable(a, b)
    b.member_id, known = "", b.member_id
    b.leave()
    a.heartbeat()
    b.member_id = known
    b.heartbeat()
    Desk(talk).describe("g")
