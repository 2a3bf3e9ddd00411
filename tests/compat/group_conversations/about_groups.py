"""FindCoordinator, DescribeGroups, ListGroups, DeleteGroups: groups seen from outside."""

from compat.group_conversations.classic import Member, assembled, stable
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import conversation
from compat.group_conversations.talk import Talk

GROUP, TRANSACTION, SHARE, NO_TYPE = 0, 1, 2, 3


@conversation()
def who_coordinates_a_group(talk: Talk) -> None:
    desk = Desk(talk)
    desk.find("g")
    desk.find("g", "h", "g")
    desk.find("")
    desk.find("g", "")
    if talk.level >= 4:
        desk.find()


@conversation(range(1, 11))
def coordinators_of_something_else(talk: Talk) -> None:
    desk = Desk(talk)
    desk.find("g", key_type=NO_TYPE)
    desk.find("g", key_type=-1)
    desk.find("g", "", key_type=NO_TYPE)


@conversation(range(1, 6))
def coordinators_of_shares_before_there_were_any(talk: Talk) -> None:
    Desk(talk).find("g:AAAAAAAAAAAAAAAAAAAAAA:0", key_type=SHARE)


@conversation()
def a_group_that_is_not_there_is_described(talk: Talk) -> None:
    desk = Desk(talk)
    desk.describe("g")
    desk.describe("g", "h", "g", operations=True)
    desk.describe("")
    desk.describe()


@conversation()
def a_group_is_described_and_listed_in_each_state(talk: Talk) -> None:
    a, b, desk = Member(talk, "a"), Member(talk, "b"), Desk(talk)
    assembled(a)
    _look(desk)
    a.sync({a: b"all"})
    _look(desk)
    entering = b.enter_call()
    _look(desk)
    a.join()
    entering.answer()
    _look(desk)
    b.leave()
    a.leave()
    _look(desk)
    desk.delete("g")
    _look(desk)


def _look(desk: Desk) -> None:
    desk.describe("g", operations=True)
    desk.list()


@conversation(range(4, 11))
def groups_are_listed_by_state(talk: Talk) -> None:
    a, desk = Member(talk, "a"), Desk(talk)
    stable(a)
    desk.commit("h", {"three": {0: 1}})
    for states in (
        ["Stable"],
        ["Empty"],
        ["Stable", "Empty"],
        ["Dead"],
        ["stable"],
        ["EMPTY"],
        ["PREPARINGREBALANCE"],
    ):
        desk.list(states)
    desk.list(["Nonsense"])
    desk.list(["Nonsense", "Stable"])
    desk.list([""])
    desk.list([" Stable "])
    desk.list(["Assigning"])


@conversation(range(5, 11))
def groups_are_listed_by_type(talk: Talk) -> None:
    a, desk = Member(talk, "a"), Desk(talk)
    stable(a)
    desk.commit("h", {"three": {0: 1}})
    for types in (
        ["classic"],
        ["consumer"],
        ["Classic"],
        ["CLASSIC", "Consumer"],
        ["share"],
        ["streams"],
        ["unknown"],
    ):
        desk.list(types=types)
    desk.list(types=["nonsense"])
    desk.list(types=[""])
    desk.list(types=[" classic "])
    desk.list(states=["Empty"], types=["classic"])
    desk.list(states=["Stable"], types=["consumer"])


@conversation()
def groups_are_deleted(talk: Talk) -> None:
    a, desk = Member(talk, "a"), Desk(talk)
    desk.delete("g")
    desk.delete("")
    desk.delete()
    stable(a)
    a.commit({"three": {0: 1}})
    desk.commit("h", {"three": {0: 1}})
    desk.delete("g", "h", "nobody", "", "h")
    desk.fetch("h", {"three": [0]})
    a.heartbeat()
    a.leave()
    desk.delete("g")
    desk.fetch("g", {"three": [0]})
    a.heartbeat()
    desk.list()
    a.member_id = ""
    a.enter()


@conversation(range(4, 11))
def a_group_whose_members_have_not_come_is_deleted(talk: Talk) -> None:
    a, desk = Member(talk, "a"), Desk(talk)
    a.join()
    desk.list()
    desk.delete("g")
    a.join()
    desk.list()
