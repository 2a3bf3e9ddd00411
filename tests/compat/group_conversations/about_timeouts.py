"""What happens to members that are not heard of: in a session, in a rebalance, before an assignment."""

from compat.group_conversations.classic import Member, assembled, stable
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import conversation
from compat.group_conversations.talk import Talk
from headrace.protocol.schema.describe_groups import DescribeGroupsRequest

SHORT_MS = 700  # longer than a busy machine pauses
FEW_LEVELS = (0, 9)


def wait_for(talk: Talk, state: str, members: int) -> None:
    """Wait until the group of the conversation is in a state, with some members."""

    def arrived() -> bool:
        (group,) = talk.ask_aside(DescribeGroupsRequest(groups=[talk.called("g")])).groups
        return group.group_state == state and len(group.members) == members

    talk.until(f"{state} with {members} members", arrived)


@conversation(FEW_LEVELS)
def a_silent_member_is_removed(talk: Talk) -> None:
    a = Member(talk, "a", session_ms=SHORT_MS)
    stable(a)
    wait_for(talk, "Empty", 0)
    Desk(talk).describe("g")
    a.heartbeat()
    a.sync()
    a.join()
    a.commit({"three": {0: 1}})


@conversation(FEW_LEVELS)
def the_others_join_again_after_one_fell_silent(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", session_ms=SHORT_MS)
    stable(a, b)
    wait_for(talk, "PreparingRebalance", 1)
    a.heartbeat()
    b.heartbeat()
    a.join()


@conversation((1, 9))
def who_does_not_join_again_in_time_is_removed(talk: Talk) -> None:
    a, b, c = (Member(talk, name, rebalance_ms=SHORT_MS) for name in "abc")
    stable(a, b)
    entering = c.enter_call()
    a.join_call().answer()
    entering.answer()
    b.heartbeat()
    Desk(talk).describe("g")


@conversation((1, 9))
def a_leader_that_does_not_join_again_in_time_is_replaced(talk: Talk) -> None:
    a, b = (Member(talk, name, rebalance_ms=SHORT_MS) for name in "ab")
    stable(a)
    b.enter_call().answer()
    a.heartbeat()
    b.sync({b: b"all"})


@conversation((1, 9))
def who_does_not_sync_in_time_is_removed(talk: Talk) -> None:
    a, b = (Member(talk, name, rebalance_ms=SHORT_MS) for name in "ab")
    assembled(a, b)
    a.sync({a: b"1", b: b"2"})
    wait_for(talk, "PreparingRebalance", 1)
    a.heartbeat()
    b.heartbeat()
    a.join()


@conversation((1, 9))
def a_leader_that_does_not_sync_in_time_is_removed(talk: Talk) -> None:
    a, b = (Member(talk, name, rebalance_ms=SHORT_MS) for name in "ab")
    assembled(a, b)
    waiting = b.sync_call()
    waiting.answer()
    a.heartbeat()
    b.heartbeat()
    b.join()


@conversation((4, 9))
def a_member_that_was_told_its_id_and_does_not_come_is_forgotten(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", session_ms=SHORT_MS)
    stable(a)
    b.join()
    late = Member(talk, "late")
    entering = late.enter_call()
    a.join()  # not before b is forgotten: until then it may come
    entering.answer()
    b.join()


@conversation((5, 9))
def a_silent_static_member_is_removed(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="k", session_ms=SHORT_MS)
    stable(a, b)
    wait_for(talk, "PreparingRebalance", 1)
    b.heartbeat()
    back = Member(talk, "back", instance="k")
    entering = back.join_call()
    a.join()
    entering.answer()


@conversation((1, 9))
def a_member_that_waits_to_join_is_not_silent(talk: Talk) -> None:
    a = Member(talk, "a", rebalance_ms=SHORT_MS * 2)
    b = Member(talk, "b", rebalance_ms=SHORT_MS * 2, session_ms=SHORT_MS // 2)
    stable(a)
    b.enter_call().answer()  # when a's time is over, much later than b's session
