"""OffsetFetch: what was committed, for one group or many, and for those who may ask."""

from compat.group_conversations.classic import Member, stable
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import conversation
from compat.group_conversations.talk import Talk


@conversation()
def offsets_of_a_group_that_is_not_there(talk: Talk) -> None:
    desk = Desk(talk)
    desk.fetch("g", {"three": [0, 1]})
    desk.fetch("", {"three": [0]})
    desk.fetch("g", {})
    desk.describe("g")
    desk.list()


@conversation()
def offsets_of_topics_and_partitions_that_are_not_there(talk: Talk) -> None:
    desk = Desk(talk)
    desk.commit("g", {"one": {0: 1}})
    desk.fetch("g", {"one": [0, 1, -1], "nowhere": [0], "": [0]})
    desk.fetch("g", {"one": []})


@conversation(range(2, 11))
def all_offsets_of_a_group(talk: Talk) -> None:
    desk = Desk(talk)
    desk.fetch("g")
    desk.commit("g", {"three": {2: 1, 0: (2, "text")}, "two": {1: 3}})
    desk.fetch("g")
    desk.fetch("")


@conversation(range(7, 11))
def only_stable_offsets(talk: Talk) -> None:
    desk = Desk(talk)
    desk.commit("g", {"three": {2: 1}})
    desk.fetch("g", {"three": [1, 2]}, require_stable=True)
    desk.fetch("g", require_stable=True)


@conversation(range(8, 11))
def offsets_of_several_groups(talk: Talk) -> None:
    desk = Desk(talk)
    desk.commit("g", {"three": {2: 1}})
    desk.commit("h", {"two": {1: 2}})
    desk.fetch_many({"g": {"three": [0, 2]}, "h": None, "nobody": {"one": [0]}, "": {"one": [0]}})
    desk.fetch_many({"nobody": None, "h": {"two": [0, 1], "nowhere": [0]}})
    desk.fetch_many({})


@conversation(range(9, 11))
def a_classic_member_says_who_it_is_when_it_fetches(talk: Talk) -> None:
    a, desk = Member(talk, "a"), Desk(talk)
    stable(a)
    a.commit({"three": {0: 4}})
    wanted = {"three": [0]}
    desk.fetch("g", wanted, member_id=a.member_id, member_epoch=a.generation)
    desk.fetch("g", wanted, member_id=a.member_id, member_epoch=a.generation + 1)
    desk.fetch("g", wanted, member_id="nobody", member_epoch=a.generation)
    desk.fetch("g", wanted, member_id="nobody", member_epoch=-1)
    desk.fetch("g", wanted, member_id=None, member_epoch=a.generation)
    desk.fetch("g", wanted, member_id="", member_epoch=a.generation)
    desk.fetch("g", None, member_id="nobody", member_epoch=a.generation)
    desk.fetch("unknown", wanted, member_id="nobody", member_epoch=1)


@conversation()
def offsets_are_deleted(talk: Talk) -> None:
    desk = Desk(talk)
    desk.delete_offsets("g", {"three": [0]})
    desk.delete_offsets("", {"three": [0]})
    desk.commit("g", {"three": {0: 1, 1: 2}, "two": {0: 3}})
    desk.delete_offsets("g", {"three": [0, 2], "two": [0]})
    desk.delete_offsets("g", {"three": [7, -1], "nowhere": [0]})
    desk.delete_offsets("g", {})
    desk.delete_offsets("g", {"three": []})
    desk.fetch("g", {"three": [0, 1], "two": [0]})
    desk.delete_offsets("g", {"three": [1]})
    desk.describe("g")
    desk.list()


@conversation()
def offsets_that_members_need_are_not_deleted(talk: Talk) -> None:
    a, desk = Member(talk, "a"), Desk(talk)
    stable(a)
    a.commit({"three": {0: 1, 1: 2}, "two": {0: 3}})
    desk.delete_offsets("g", {"three": [0], "two": [0, 1]})
    desk.fetch("g", {"three": [0], "two": [0]})
    a.leave()
    desk.delete_offsets("g", {"three": [0]})
    desk.fetch("g", {"three": [0, 1]})


@conversation((0, 9))
def offsets_of_members_that_hide_what_they_read_are_not_deleted(talk: Talk) -> None:
    a, desk = Member(talk, "a", protocols=[("range", b"")]), Desk(talk)
    stable(a)
    a.commit({"three": {0: 1}})
    desk.delete_offsets("g", {"three": [0], "two": [0]})
    b = Member(talk, "b", "connect", protocols=[("default", b"hello")])
    b.join(protocol_type="connect")
    if talk.level >= 4:
        b.join(protocol_type="connect")
    b.commit({"three": {0: 1}})
    desk.delete_offsets("connect", {"three": [0]})
