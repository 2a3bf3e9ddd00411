"""SyncGroup and Heartbeat: what is answered in each state of the group."""

from compat.group_conversations.classic import Member, assembled, stable, subscription
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import conversation
from compat.group_conversations.talk import Talk


@conversation()
def nobody_is_known_where_there_is_no_group(talk: Talk) -> None:
    a = Member(talk, "a")
    a.heartbeat()
    a.sync()
    a.leave()
    a.member_id, a.generation = "nobody", 1
    a.heartbeat()
    a.sync(protocol_name="range")
    a.leave()


@conversation()
def followers_wait_for_the_leaders_assignment(talk: Talk) -> None:
    a, b, c = Member(talk, "a"), Member(talk, "b"), Member(talk, "c")
    assembled(a, b, c)
    waiting = b.sync_call()
    b.heartbeat()
    a.heartbeat()
    Desk(talk).describe("g")
    a.sync({a: b"1", b: b"2"})  # and nothing for c
    waiting.answer()
    c.sync()
    Desk(talk).describe("g")


@conversation()
def an_assignment_for_somebody_who_is_not_there(talk: Talk) -> None:
    a, stranger = Member(talk, "a"), Member(talk, "stranger")
    assembled(a)
    stranger.member_id = "nobody"
    a.sync({stranger: b"1"})
    Desk(talk).describe("g")


@conversation()
def only_the_leaders_assignment_counts(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    assembled(a, b)
    waiting = b.sync_call({a: b"b wants this for a", b: b"b wants this"})
    a.sync({a: b"1", b: b"2"})
    waiting.answer()
    a.sync({a: b"3", b: b"4"})
    b.sync()
    b.heartbeat()


@conversation()
def another_generation_or_another_member_cannot_sync(talk: Talk) -> None:
    a = Member(talk, "a")
    assembled(a)
    for generation in (0, 2, -1):
        a.sync(generation_id=generation)
    a.sync(member_id="nobody")
    a.sync(member_id="")
    a.sync({a: b"1"})
    a.sync(generation_id=2)
    a.sync(member_id="nobody")


@conversation()
def the_protocol_must_be_the_one_that_was_chosen(talk: Talk) -> None:
    a = Member(talk, "a")
    assembled(a)
    a.sync(protocol_name="sticky")
    a.sync(protocol_type="connect")
    a.sync(protocol_name=None)
    a.sync(protocol_type=None)
    a.sync({a: b"1"})
    a.sync(protocol_name="sticky")
    a.sync(protocol_type="connect")


@conversation()
def everybody_joins_so_nobody_can_sync(talk: Talk) -> None:
    a, b, c = Member(talk, "a"), Member(talk, "b"), Member(talk, "c")
    stable(a, b)
    entering = c.enter_call()
    a.sync({a: b"1"})
    b.sync()
    b.sync(generation_id=1)
    a.heartbeat(generation_id=1)
    a.heartbeat(member_id="nobody")
    a.commit({"three": {0: 3}})
    again = a.join_call()
    a.sync()
    a.heartbeat()
    b.join()
    again.answer()
    entering.answer()


@conversation()
def a_new_member_interrupts_those_that_wait_for_an_assignment(talk: Talk) -> None:
    a, b, c = Member(talk, "a"), Member(talk, "b"), Member(talk, "c")
    assembled(a, b)
    waiting = b.sync_call()
    entering = c.enter_call()
    waiting.answer()
    a.sync({a: b"1"})
    a.heartbeat()
    again = [a.join_call(), b.join_call()]
    for call in (*again, entering):
        call.answer()


@conversation()
def heartbeats_that_do_not_fit(talk: Talk) -> None:
    a = Member(talk, "a")
    assembled(a)
    a.heartbeat()
    a.heartbeat(generation_id=2)
    a.heartbeat(generation_id=-1)
    a.heartbeat(member_id="")
    a.sync({a: b"1"})
    a.heartbeat()
    a.heartbeat(generation_id=0)
    a.heartbeat(member_id="nobody")
    a.leave()
    a.heartbeat()
    a.sync()
    a.join()
    Desk(talk).describe("g")


@conversation()
def a_cooperative_member_that_joins_again_to_give_up_partitions(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    before = subscription("three", version=3, generation_id=1)
    a.protocols = b.protocols = [("cooperative-sticky", before)]
    stable(a, b)
    a.protocols = [("cooperative-sticky", subscription("three", version=3, generation_id=2))]
    again = a.join_call()
    b.heartbeat()
    b.join()
    again.answer()
    syncing = b.sync_call()
    a.sync({a: b"1", b: b"2"})
    syncing.answer()
