"""Consumers (KIP-848) that do what comes to their minds: long conversations that nobody has thought of.

They ask for the range assignor, which gives the same members the same partitions on every broker.
"""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from compat.group_conversations.consumer import Consumer
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import CONSUMER_LEVELS, conversation
from compat.group_conversations.talk import Talk
from headrace.protocol.errors import ErrorCode

SEEDS = range(10)
STEPS = 150
TOPICS = [["three"], ["two"], ["two", "three"], ["nowhere", "three"]]


class Walk:
    """One group, three consumers, one of them static, and a die."""

    def __init__(self, talk: Talk, seed: int) -> None:
        self.talk = talk
        self.chance = random.Random(seed)
        self.desk = Desk(talk)
        self.away: set[Consumer] = set()
        self.consumers = [Consumer(talk, "a"), Consumer(talk, "b"), Consumer(talk, "c", instance="c")]
        self.acts: list[Callable[[Consumer], object]] = [
            *[self._join] * 3,
            *[self._own] * 5,
            *[self._heartbeat] * 3,
            self._subscribe,
            self._commit,
            self._fetch,
            self._leave,
            self._pause,
            self._restart,
            lambda _: self.desk.describe_consumers("g"),
        ]

    def go(self, steps: int) -> None:
        for _ in range(steps):
            self.chance.choice(self.acts)(self.chance.choice(self.consumers))

    def _join(self, consumer: Consumer) -> None:
        if consumer.epoch and self.chance.random() < 0.7:
            consumer.full(server_assignor="range")
        elif consumer.instance is not None and consumer not in self.away:
            self._restart(consumer)  # to a second join under one id we give an answer, and Kafka an error
        else:
            self.away.discard(consumer)
            consumer.join(server_assignor="range")

    def _own(self, consumer: Consumer) -> None:
        if self.chance.random() < 0.2:
            topic = self.chance.choice(["two", "three"])
            consumer.owns({topic: [part for part in range(2) if self.chance.random() < 0.5]})
        else:
            consumer.owns()

    def _heartbeat(self, consumer: Consumer) -> None:
        consumer.heartbeat(member_epoch=max(consumer.epoch + self.chance.choice([0, 0, 0, 0, -1, 1, -2]), 1))

    def _subscribe(self, consumer: Consumer) -> None:
        consumer.topics = self.chance.choice(TOPICS)
        consumer.heartbeat(subscribed_topic_names=consumer.topics)

    def _commit(self, consumer: Consumer) -> None:
        epoch = consumer.epoch + self.chance.choice([0, 0, 1])
        positions = {"three": {self.chance.randrange(3): self.chance.randrange(100)}}
        consumer.commit(positions, generation_id_or_member_epoch=epoch)

    def _fetch(self, consumer: Consumer) -> None:
        epoch = consumer.epoch + self.chance.choice([0, 0, -1, 1])
        self.desk.fetch("g", {"three": [0, 1, 2]}, member_id=consumer.member_id, member_epoch=epoch)

    def _leave(self, consumer: Consumer) -> None:
        self._gone(consumer, consumer.leave())

    def _pause(self, consumer: Consumer) -> None:
        self._gone(consumer, consumer.leave(member_epoch=-2))

    def _gone(self, consumer: Consumer, answer: Any) -> None:
        consumer.owned = {}
        if answer.error_code == ErrorCode.NONE:
            self.away.add(consumer)

    def _restart(self, consumer: Consumer) -> None:
        """A static consumer's process ends, and another one begins."""
        if consumer.instance is not None:
            place = self.consumers.index(consumer)
            self.consumers[place] = Consumer(self.talk, consumer.name + "x", instance=consumer.instance)
            self.consumers[place].join(server_assignor="range")


def walk(seed: int, talk: Talk) -> None:
    Walk(talk, seed).go(STEPS)


for _seed in SEEDS:
    conversation(CONSUMER_LEVELS, name=f"consumers_by_chance_{_seed}")(partial(walk, _seed))
