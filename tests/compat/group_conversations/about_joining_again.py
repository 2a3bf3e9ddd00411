"""JoinGroup by members that are in: what makes a new generation, and what does not."""

from compat.group_conversations.classic import Member, assembled, stable, subscription
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import conversation
from compat.group_conversations.talk import Talk

OTHER = subscription("two")


@conversation()
def a_follower_that_joins_again_unchanged_is_answered_at_once(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    stable(a, b)
    b.join()
    b.sync()
    a.heartbeat()
    b.heartbeat()


@conversation()
def a_leader_that_joins_again_makes_everybody_join(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    stable(a, b)
    again = a.join_call()
    b.heartbeat()
    a.heartbeat()
    b.join()
    again.answer()
    Desk(talk).describe("g")


@conversation()
def a_follower_with_new_metadata_makes_everybody_join(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    stable(a, b)
    b.protocols = [("range", OTHER)]
    again = b.join_call()
    a.heartbeat()
    a.join()
    again.answer()


@conversation()
def joining_again_while_the_assignment_is_awaited(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    assembled(a, b)
    a.join()
    b.join()
    b.protocols = [("range", OTHER)]
    changed = b.join_call()
    a.heartbeat()
    a.join()
    changed.answer()


@conversation(levels=range(4, 11))
def joining_twice_while_everybody_joins(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    stable(a)
    b.enter_call()  # Kafka forgets it, and never answers
    second = b.join_call()
    a.join()
    second.answer()
