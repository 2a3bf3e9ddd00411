"""JoinGroup: the protocol that all members have to agree on."""

from compat.group_conversations.classic import Member, protocols_of, stable, subscription
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import conversation
from compat.group_conversations.talk import Talk


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
def an_empty_group_takes_any_type_of_protocol(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", protocols=[("default", b"hello")])
    stable(a)
    a.leave()
    Desk(talk).describe("g")
    b.join(protocol_type="connect")
    b.join(protocol_type="connect")
    Desk(talk).describe("g")
    Desk(talk).list()
