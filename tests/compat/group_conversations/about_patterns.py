"""Subscriptions by regular expression (KIP-848).

Kafka looks for the topics of an expression in the background and answers before it has found them. So what is
compared is how it ends.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from compat.group_conversations.consumer import Consumer
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import conversation
from compat.group_conversations.talk import Talk

PATTERN_LEVELS = (10,)


def ends_with(consumer: Consumer, owned: Mapping[str, Sequence[int]], **first: Any) -> None:
    """Say something, then do as told until these partitions are owned, and nothing else is to come."""
    with consumer.talk.aside():
        consumer.heartbeat(**first)
        consumer.talk.until(f"{owned} are owned", lambda: _told(consumer) == dict(owned))
    consumer.heartbeat()


def _told(consumer: Consumer) -> dict[str, Sequence[int]]:
    consumer.owns()
    return {topic: sorted(which) for topic, which in consumer.owned.items()}


def joined(consumer: Consumer, owned: Mapping[str, Sequence[int]], pattern: str) -> None:
    """Join with an expression and get these partitions."""
    with consumer.talk.aside():
        consumer.join(subscribed_topic_regex=pattern)
    ends_with(consumer, owned)


@conversation(PATTERN_LEVELS)
def a_pattern_matches_whole_names(talk: Talk) -> None:
    a, desk = Consumer(talk, "a", topics=None), Desk(talk)
    joined(a, {"one": [0], "two": [0, 1]}, "on.*|tw.*")
    desk.describe_consumers("g")
    b = Consumer(talk, "b", "h", topics=None)
    joined(b, {"one": [0]}, "one|hre|ne|twoo|^$")
    desk.describe_consumers("h")


@conversation(PATTERN_LEVELS)
def a_pattern_changes_and_goes(talk: Talk) -> None:
    a, desk = Consumer(talk, "a", topics=None), Desk(talk)
    joined(a, {"one": [0]}, "one")
    ends_with(a, {"two": [0, 1]}, subscribed_topic_regex="t[wx]o")
    desk.describe_consumers("g")
    ends_with(a, {}, subscribed_topic_regex="")
    desk.describe_consumers("g")


@conversation(PATTERN_LEVELS)
def names_and_a_pattern(talk: Talk) -> None:
    a = Consumer(talk, "a", topics=["three"])
    with talk.aside():  # at an epoch that says how long it took to find the topics
        joined(a, {"one": [0], "three": [0, 1, 2]}, "on.")
    Desk(talk).list()


@conversation(PATTERN_LEVELS)
def patterns_that_are_none(talk: Talk) -> None:
    a, desk = Consumer(talk, "a", topics=None), Desk(talk)
    for pattern in ("[", "(", "*", "a{2,1}", "\\", "(?<name", "[z-a]"):
        a.join(subscribed_topic_regex=pattern)
    desk.describe_consumers("g")
    joined(a, {"one": [0]}, "one")
    a.heartbeat(subscribed_topic_regex="[")
    a.heartbeat()
    desk.describe_consumers("g")


@conversation(PATTERN_LEVELS)
def an_empty_pattern_is_no_subscription(talk: Talk) -> None:
    a = Consumer(talk, "a", topics=None)
    a.join(subscribed_topic_regex="")
    a.join()
    a.join(subscribed_topic_names=["three"], subscribed_topic_regex="")
    Desk(talk).describe_consumers("g")


@conversation(PATTERN_LEVELS)
def two_consumers_with_one_pattern(talk: Talk) -> None:
    a, b = Consumer(talk, "a", topics=None), Consumer(talk, "b", topics=None)
    joined(a, {"two": [0, 1]}, "two")
    b.join(subscribed_topic_regex="two")
    a.heartbeat()
    a.owns()
    b.heartbeat()
    Desk(talk).describe_consumers("g")
