"""A classic member and two consumers in one group, which goes up and down between the protocols by chance.

All are static and ask for the range assignor, so that nothing depends on ids that are made by chance.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from compat.group_conversations.classic import Member, assignment, owned, subscription
from compat.group_conversations.consumer import Consumer
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import CONSUMER_LEVELS, conversation
from compat.group_conversations.talk import Talk
from headrace.protocol.errors import ErrorCode

SEEDS = range(10)
STEPS = 150
NAMES = ["range", "cooperative-sticky"]


class Walk:
    """One group, three members, and a die."""

    def __init__(self, talk: Talk, seed: int) -> None:
        self.talk = talk
        self.chance = random.Random(seed)
        self.desk = Desk(talk)
        self.protocol = self.chance.choice(NAMES)
        self.consumers = [Consumer(talk, name, instance=name) for name in "ab"]
        self.member = self._classic("d")
        self.has_synced = True
        self.acts: list[Callable[[], object]] = [
            *[self._member_joins] * 3,
            *[self._member_syncs] * 3,
            *[self._member_heartbeats] * 2,
            self._member_commits,
            self._member_leaves,
            self._member_restarts,
            *[self._consumer_joins] * 3,
            *[self._consumer_owns] * 5,
            self._consumer_heartbeats,
            *[self._consumer_leaves] * 2,
            self._consumer_commits,
            self._look,
        ]

    def go(self, steps: int) -> None:
        for _ in range(steps):
            self.chance.choice(self.acts)()

    # -- the classic member --------------------------------------------------------------------

    def _classic(self, name: str) -> Member:
        return Member(self.talk, name, instance="d", protocols=[(self.protocol, self._subscription())])

    def _subscription(self) -> bytes:
        has = owned(three=[part for part in range(3) if self.chance.random() < 0.3])
        return subscription("three", version=1, owned_partitions=has)

    def _member_joins(self) -> None:
        if self.chance.random() < 0.3 and self.has_synced:
            self.member.protocols = [(self.protocol, self._subscription())]
        self._joined(self.member.join())

    def _member_syncs(self) -> None:
        drift = self.chance.choice([0, 0, 0, 1])
        parts = {self.member: assignment(three=[0, 1, 2])} if self.member.member_id else {}
        if self.member.sync(parts, generation_id=self.member.generation + drift).error_code == ErrorCode.NONE:
            self.has_synced = True

    def _member_heartbeats(self) -> None:
        self.member.heartbeat(generation_id=self.member.generation + self.chance.choice([0, 0, 0, -1, 1]))

    def _member_commits(self) -> None:
        epoch = self.member.generation + self.chance.choice([0, 0, 1])
        self.member.commit({"three": {0: self.chance.randrange(100)}}, generation_id_or_member_epoch=epoch)

    def _member_leaves(self) -> None:
        self.member.leave()
        self.member.member_id, self.member.generation = "", -1

    def _member_restarts(self) -> None:
        if self.has_synced:
            self.member = self._classic(self.member.name + "'")
            self._joined(self.member.join())

    def _joined(self, answer: Any) -> None:
        """Remember to sync before the group comes together anew: Kafka forgets the last assignment if not."""
        if answer.error_code == ErrorCode.NONE:
            self.has_synced = False

    # -- the consumers -------------------------------------------------------------------------

    def _consumer_joins(self) -> None:
        """Under a new id: to a second join under one id we give an answer, and Kafka an error."""
        place = self.chance.randrange(2)
        old = self.consumers[place]
        new = Consumer(self.talk, old.name + "'", instance=old.instance)
        if new.join(server_assignor="range").error_code == ErrorCode.NONE:
            self.consumers[place] = new

    def _consumer_owns(self) -> None:
        self.chance.choice(self.consumers).owns()

    def _consumer_heartbeats(self) -> None:
        self.chance.choice(self.consumers).heartbeat()

    def _consumer_leaves(self) -> None:
        self.chance.choice(self.consumers).leave()

    def _consumer_commits(self) -> None:
        self.chance.choice(self.consumers).commit({"three": {1: self.chance.randrange(100)}})

    # -- from outside --------------------------------------------------------------------------

    def _look(self) -> None:
        self.desk.describe_consumers("g")
        self.desk.describe("g")
        self.desk.list()
        self.desk.fetch("g")


def walk(seed: int, talk: Talk) -> None:
    Walk(talk, seed).go(STEPS)


for _seed in SEEDS:
    conversation(CONSUMER_LEVELS, name=f"both_by_chance_{_seed}")(partial(walk, _seed))
