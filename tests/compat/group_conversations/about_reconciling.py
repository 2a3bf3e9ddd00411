"""How partitions move between consumers (KIP-848), one heartbeat at a time."""

from compat.group_conversations import fresh_topics
from compat.group_conversations.consumer import Consumer, settle, shares
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import CONSUMER_LEVELS, conversation
from compat.group_conversations.talk import Talk


@conversation(CONSUMER_LEVELS)
def partitions_are_given_up_before_they_are_given_away(talk: Talk) -> None:
    a, b, desk = Consumer(talk, "a"), Consumer(talk, "b"), Desk(talk)
    a.join()
    a.owns()
    b.join()
    desk.describe_consumers("g")
    b.heartbeat()
    a.heartbeat()
    desk.describe_consumers("g")
    a.heartbeat()
    b.heartbeat()
    a.owns()
    b.heartbeat()
    b.owns()
    desk.describe_consumers("g")
    a.heartbeat()
    b.heartbeat()


@conversation(CONSUMER_LEVELS)
def what_was_not_revoked_is_asked_for_again(talk: Talk) -> None:
    a, b = Consumer(talk, "a"), Consumer(talk, "b")
    a.join()
    a.owns()
    b.join()
    a.heartbeat()
    a.owns({"three": [0, 1, 2]})
    a.full(topic_partitions=a.partitions({"three": [0, 1, 2]}))
    a.owns({"three": []})
    b.heartbeat()
    a.heartbeat()


@conversation(CONSUMER_LEVELS)
def everything_is_said_again_after_a_lost_answer(talk: Talk) -> None:
    a = Consumer(talk, "a")
    a.join()
    a.full()
    a.owned = {}
    a.full()
    a.owns()
    a.full()


@conversation(CONSUMER_LEVELS)
def a_lost_answer_with_a_new_epoch(talk: Talk) -> None:
    a, b = Consumer(talk, "a"), Consumer(talk, "b")
    a.join()
    a.owns()
    before, owned = a.epoch, a.owned
    b.join()
    a.heartbeat()
    a.owns()
    a.epoch = before
    a.heartbeat()
    a.full(topic_partitions=a.partitions(owned))
    a.full(topic_partitions=[])


@conversation(CONSUMER_LEVELS)
def three_consumers_share_three_topics(talk: Talk) -> None:
    trio = [Consumer(talk, name, topics=["one", "two", "three"]) for name in "abc"]
    with talk.aside():  # who gets which depends on the topics' ids, which are made by chance
        for each in trio:
            each.join()
        settle(*trio)
    talk.state("all", shares(*trio))
    trio[1].leave()
    with talk.aside():
        settle(trio[0], trio[2])
    talk.state("all", shares(trio[0], trio[2]))


@conversation(CONSUMER_LEVELS)
def more_consumers_than_partitions(talk: Talk) -> None:
    a, b = Consumer(talk, "a", topics=["one"]), Consumer(talk, "b", topics=["one"])
    a.join()
    a.owns()
    b.join()
    a.heartbeat()
    b.heartbeat()
    Desk(talk).describe_consumers("g")
    a.leave()
    b.heartbeat()
    b.owns()


@conversation(CONSUMER_LEVELS)
def a_range_of_each_topic(talk: Talk) -> None:
    a, b = (Consumer(talk, name, topics=["two", "three"]) for name in "ab")
    a.join(server_assignor="range")
    b.join(server_assignor="range")
    for _ in range(3):
        a.owns()
        b.owns()
    Desk(talk).describe_consumers("g")


@conversation(CONSUMER_LEVELS)
def consumers_of_different_topics(talk: Talk) -> None:
    a, b = Consumer(talk, "a", topics=["one", "two"]), Consumer(talk, "b", topics=["two", "three"])
    a.join()
    b.join()
    for _ in range(3):
        a.owns()
        b.owns()
    Desk(talk).describe_consumers("g")


@conversation(CONSUMER_LEVELS)
def a_subscription_changes(talk: Talk) -> None:
    a, desk = Consumer(talk, "a"), Desk(talk)
    a.join()
    a.owns()
    a.heartbeat(subscribed_topic_names=["three"])
    a.heartbeat(subscribed_topic_names=["two"])
    desk.describe_consumers("g")
    a.owns({})
    a.owns()
    a.heartbeat(subscribed_topic_names=[])
    a.owns({})
    a.heartbeat()
    desk.describe_consumers("g")


@conversation(CONSUMER_LEVELS)
def a_consumer_owns_what_it_was_never_given(talk: Talk) -> None:
    a, b = Consumer(talk, "a"), Consumer(talk, "b")
    a.join()
    a.owns()
    b.join()
    b.owns({"three": [0, 1, 2]})
    b.owns({"two": [0]})
    a.heartbeat()


@conversation(CONSUMER_LEVELS)
def a_rack_and_a_timeout_change(talk: Talk) -> None:
    a, desk = Consumer(talk, "a"), Desk(talk)
    a.join(rack_id="here")
    desk.describe_consumers("g")
    a.heartbeat(rack_id="there")
    a.heartbeat(rebalance_timeout_ms=10_000)
    desk.describe_consumers("g")
    a.heartbeat()


@conversation(CONSUMER_LEVELS)
def a_topic_that_is_made_later(talk: Talk) -> None:
    a = Consumer(talk, "a", topics=[talk.called("later"), "one"])
    a.join()
    a.owns()
    fresh_topics.make(talk, "later", 2)
    Desk(talk).describe_consumers("g")
    a.heartbeat()
    a.owns()
    Desk(talk).describe_consumers("g")


@conversation(CONSUMER_LEVELS)
def a_topic_that_is_deleted(talk: Talk) -> None:
    name = fresh_topics.make(talk, "short-lived", 2)
    a = Consumer(talk, "a", topics=[name, "one"])
    a.join()
    a.owns()
    a.commit({name: {0: 5}, "one": {0: 6}})
    fresh_topics.delete(talk, name)
    a.heartbeat()
    a.owns()
    Desk(talk).describe_consumers("g")


@conversation(CONSUMER_LEVELS)
def a_topic_that_is_deleted_and_made_again(talk: Talk) -> None:
    name = fresh_topics.make(talk, "phoenix", 2)
    a = Consumer(talk, "a", topics=[name])
    a.join()
    a.owns()
    fresh_topics.delete(talk, name)
    fresh_topics.make(talk, "phoenix", 1)
    a.heartbeat()
    a.owns({})
    a.owns()
