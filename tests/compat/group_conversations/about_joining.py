"""JoinGroup: who is let in, who leads, and what makes a new generation."""

from compat.group_conversations.brokers import MAX_SIZE
from compat.group_conversations.classic import Member, assembled, protocols_of, stable, subscription
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


@conversation()
def a_join_without_protocols(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    a.join(protocols=[])
    a.join(protocol_type="")
    a.join(protocols=[], protocol_type="")
    stable(a)
    b.join(protocols=[])
    b.join(protocol_type="")
    Desk(talk).describe("g")


@conversation()
def another_type_of_protocol_does_not_fit_in(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    stable(a)
    b.join(protocol_type="connect")
    a.heartbeat()
    a.leave()
    b.enter_call().answer()
    b.join(protocol_type="connect")


@conversation()
def protocols_that_have_nothing_in_common(talk: Talk) -> None:
    a, b, c = Member(talk, "a"), Member(talk, "b"), Member(talk, "c")
    a.protocols = [("range", b"1"), ("sticky", b"2")]
    stable(a)
    b.join(protocols=protocols_of(("roundrobin", b"3")))
    c.protocols = [("roundrobin", b"3"), ("sticky", b"4")]
    entering = c.enter_call()
    a.join()
    entering.answer()
    b.join(protocols=protocols_of(("range", b"1")))


@conversation()
def the_protocol_with_most_votes_is_chosen(talk: Talk) -> None:
    x, y = subscription("one"), subscription("two")
    a = Member(talk, "a", protocols=[("range", x), ("sticky", x)])
    b = Member(talk, "b", protocols=[("sticky", y), ("range", y)])
    c = Member(talk, "c", protocols=[("sticky", y), ("range", y)])
    stable(a, b, c)
    Desk(talk).describe("g")


@conversation()
def metadata_that_is_no_subscription(talk: Talk) -> None:
    for number, metadata in enumerate((b"", b"\x00")):  # with b"what is this" Kafka never answers
        a = Member(talk, f"a{number}", f"g{number}", protocols=[("range", metadata)])
        stable(a)
        Desk(talk).describe(f"g{number}")
    b = Member(talk, "b", "connect", protocols=[("default", b"")])
    b.join(protocol_type="connect")
    b.join(protocol_type="connect")
    b.sync({b: b""}, protocol_type="connect", protocol_name="default")
    Desk(talk).describe("connect")


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


@conversation()
def an_empty_group_takes_any_type_of_protocol(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", protocols=[("default", b"hello")])
    stable(a)
    a.leave()
    Desk(talk).describe("g")
    b.join(protocol_type="connect")
    b.join(protocol_type="connect")
    Desk(talk).describe("g")
    Desk(talk).list()
