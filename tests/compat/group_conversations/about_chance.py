"""Members that do what comes to their minds: long conversations that nobody has thought of.

Three members of one classic group join, sync, heartbeat, commit, leave and come back in any order. After each
request all that can be answered is answered, so that every broker is asked the same next.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from compat.group_conversations.classic import Member, subscription
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import conversation
from compat.group_conversations.talk import Call, Talk
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.describe_groups import DescribeGroupsRequest

SEEDS = range(6)
STEPS = 120
LEVELS = (0, 4, 9)
SUBSCRIPTIONS = [subscription("one"), subscription("two"), subscription("one", "two")]


class Walk:
    """One group, three members, and a die."""

    def __init__(self, talk: Talk, seed: int) -> None:
        self.talk = talk
        self.chance = random.Random(seed)
        self.desk = Desk(talk)
        self.members = [Member(talk, "a"), Member(talk, "b"), self._static("c")]
        self.joining: dict[Member, Call] = {}
        self.syncing: dict[Member, Call] = {}
        self.known: dict[str, str] = {}  # whose every id is: "c" for all incarnations of c
        self.leader = ""  # likewise

    def go(self, steps: int) -> None:
        for _ in range(steps):
            member = self.chance.choice(self.members)
            was_empty = self._group().group_state in {"Empty", "Dead"}
            self._act(member)
            self._hear_all(was_empty=was_empty)

    def _act(self, member: Member) -> None:
        waits = member in self.joining or member in self.syncing
        busy = [self._heartbeat, self._commit, self._describe, self._restart]
        free = [
            self._join,
            self._join,
            self._join,
            self._sync,
            self._sync,
            self._heartbeat,
            *busy,
            self._leave,
        ]
        acts: list[Callable[[Member], None]] = busy if waits else free
        self.chance.choice(acts)(member)

    def _join(self, member: Member) -> None:
        if self.chance.random() < 0.2:
            member.protocols = [("range", self.chance.choice(SUBSCRIPTIONS))]
        if self.chance.random() < 0.05:
            member.join(member_id="nobody")
        elif member.member_id:
            self.joining[member] = member.join_call()
        else:
            self.joining[member] = member.enter_call()

    def _sync(self, member: Member) -> None:
        if self.chance.random() < 0.2:
            member.sync(generation_id=member.generation + self.chance.choice([-1, 1, 7]))
            return
        word = str(self.chance.randrange(1000))
        parts = {each: f"{word} for {each.name}".encode() for each in self.members if each.member_id}
        self.syncing[member] = member.sync_call(parts if self._leads(member) else {})

    def _heartbeat(self, member: Member) -> None:
        drift = self.chance.choice([0, 0, 0, 0, -1, 1])
        member.heartbeat(generation_id=member.generation + drift)

    def _commit(self, member: Member) -> None:
        drift = self.chance.choice([0, 0, 0, -1, 1])
        epoch = max(member.generation + drift, -1)
        member.commit(
            {"three": {self.chance.randrange(3): self.chance.randrange(100)}},
            generation_id_or_member_epoch=epoch,
        )

    def _describe(self, _: Member) -> None:
        if self._group().group_state in {"Stable", "Empty"}:  # else Kafka may have forgotten the assignment
            self.desk.describe("g")
        self.desk.list()
        self.desk.fetch("g", {"three": [0, 1, 2]})

    def _leave(self, member: Member) -> None:
        if self._leads(member) and len(self._group().members) > 2:
            return  # Kafka lets any of the others lead
        member.leave()
        if self._leads(member):
            self.leader = "".join(self.known.get(each.member_id, "") for each in self._group().members)
        if self.chance.random() < 0.8:
            member.member_id, member.generation = "", -1

    def _restart(self, member: Member) -> None:
        """A static member's process ends, and another one begins."""
        if member.instance is not None:
            place = self.members.index(member)
            self.members[place] = self._static(member.name + "'")
            self._join(self.members[place])

    def _static(self, name: str) -> Member:
        return Member(self.talk, name, instance="c" if self.talk.level >= 5 else None)

    def _hear_all(self, *, was_empty: bool) -> None:
        """Take every answer that does not have to wait for somebody."""
        self.talk.settle()
        if was_empty and self.joining:
            self.talk.until("the first generation", lambda: self._group().group_state != "PreparingRebalance")
        state = self._group().group_state
        members = {each.member_id for each in self._group().members}
        for member, call in list(self.joining.items()):
            if state != "PreparingRebalance" or call.has_answer():
                del self.joining[member]
                self._note(member, call.answer())
        for member, call in list(self.syncing.items()):
            if state != "CompletingRebalance" or call.has_answer() or member.member_id not in members:
                del self.syncing[member]
                call.answer()

    def _note(self, member: Member, answer: Any) -> None:
        """Remember who has which id, and who leads: ids are met before their owners have heard of them."""
        if answer.error_code == ErrorCode.NONE:
            self.known[answer.member_id] = member.name[0]
            self.leader = self.known.get(answer.leader, self.leader)

    def _leads(self, member: Member) -> bool:
        return member.name[0] == self.leader

    def _group(self) -> Any:
        (group,) = self.talk.ask_aside(DescribeGroupsRequest(groups=[self.talk.called("g")])).groups
        return group


def walk(seed: int, talk: Talk) -> None:
    Walk(talk, seed).go(STEPS)


for _seed in SEEDS:
    conversation(LEVELS, name=f"a_walk_by_chance_{_seed}")(partial(walk, _seed))
