"""LeaveGroup: alone, several at once, by instance."""

from compat.group_conversations.classic import Member, assembled, stable
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import conversation
from compat.group_conversations.talk import Talk
from headrace.protocol.schema.leave_group import MemberIdentity

BATCHED_LEVELS = range(3, 11)


@conversation()
def the_only_member_leaves(talk: Talk) -> None:
    a = Member(talk, "a")
    stable(a)
    a.leave()
    Desk(talk).describe("g")
    a.leave()
    a.enter_call().answer()


@conversation()
def a_follower_leaves_and_the_leader_has_to_join_again(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    stable(a, b)
    b.leave()
    a.heartbeat()
    Desk(talk).describe("g")
    a.join()
    a.sync({a: b"all"})
    b.heartbeat()


@conversation()
def a_leader_leaves_and_another_leads(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    stable(a, b)
    a.leave()
    b.heartbeat()
    b.join()
    b.sync({b: b"all"})


@conversation()
def leaving_while_everybody_joins(talk: Talk) -> None:
    a, b, c = Member(talk, "a"), Member(talk, "b"), Member(talk, "c")
    stable(a, b)
    entering = c.enter_call()
    again = a.join_call()
    b.leave()
    again.answer()
    entering.answer()


@conversation()
def leaving_while_the_assignment_is_awaited(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    assembled(a, b)
    waiting = b.sync_call()
    a.leave()
    waiting.answer()
    b.join()
    Desk(talk).describe("g")


@conversation()
def somebody_unknown_leaves(talk: Talk) -> None:
    a = Member(talk, "a")
    stable(a)
    nobody = MemberIdentity(member_id="nobody")
    a.leave(member_id="nobody", members=[nobody])
    a.leave(member_id="", members=[])
    a.heartbeat()


@conversation(BATCHED_LEVELS)
def several_leave_at_once(talk: Talk) -> None:
    a, b, c = Member(talk, "a"), Member(talk, "b"), Member(talk, "c")
    stable(a, b, c)
    b.leave(
        members=[
            MemberIdentity(member_id="nobody", reason="never was here"),
            MemberIdentity(member_id=b.member_id, reason="had enough"),
            MemberIdentity(member_id=c.member_id),
            MemberIdentity(member_id=c.member_id),
        ]
    )
    a.heartbeat()
    a.join()
    Desk(talk).describe("g")


@conversation(range(5, 11))
def static_members_leave_by_instance_and_by_both(talk: Talk) -> None:
    a = Member(talk, "a")
    s, t, u = (Member(talk, name, instance=f"instance-{name}") for name in "stu")
    stable(a, s, t, u)
    a.leave(
        members=[
            MemberIdentity(member_id="", group_instance_id="instance-s"),
            MemberIdentity(member_id="nobody", group_instance_id="instance-t"),
            MemberIdentity(member_id=u.member_id, group_instance_id="instance-u"),
            MemberIdentity(member_id="", group_instance_id="instance-x"),
            MemberIdentity(member_id="nobody", group_instance_id="instance-x"),
            MemberIdentity(member_id=a.member_id, group_instance_id="instance-x"),
            MemberIdentity(member_id="", group_instance_id=None),
        ]
    )
    Desk(talk).describe("g")
    t.leave(members=[MemberIdentity(member_id=t.member_id)])
    a.heartbeat()


@conversation(range(4, 11))
def somebody_leaves_who_was_only_told_an_id(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    stable(a)
    b.join()
    b.leave()
    a.heartbeat()
    b.join()
    b.member_id = ""
    entering = b.enter_call()
    a.join()
    entering.answer()


@conversation()
def a_new_member_that_waits_to_join_leaves(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="k" if talk.level >= 5 else None)
    stable(a)
    if talk.level < 4:
        return
    entering = b.enter_call()
    if talk.level >= 5:
        b.leave(members=[MemberIdentity(member_id="", group_instance_id="k")])
    else:
        b.leave()
    entering.answer()
    a.heartbeat()
    a.join()
