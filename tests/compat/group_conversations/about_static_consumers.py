"""Consumers with an instance id (KIP-848), which leave for a while and come back."""

from compat.group_conversations.consumer import Consumer
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import CONSUMER_LEVELS, conversation
from compat.group_conversations.talk import Talk

FOR_A_WHILE = -2


@conversation(CONSUMER_LEVELS)
def a_static_consumer_leaves_for_a_while_and_comes_back(talk: Talk) -> None:
    a, b = Consumer(talk, "a", instance="i"), Consumer(talk, "b", instance="k")
    back, desk = Consumer(talk, "back", instance="i"), Desk(talk)
    a.join()
    b.join()
    for _ in range(2):
        a.owns()
        b.owns()
    a.leave(member_epoch=FOR_A_WHILE)
    desk.describe_consumers("g")
    b.heartbeat()
    a.heartbeat()
    back.join()
    back.owns()
    a.heartbeat()
    b.heartbeat()
    desk.describe_consumers("g")


@conversation(CONSUMER_LEVELS)
def a_static_consumer_whose_place_is_taken(talk: Talk) -> None:
    a, twin = Consumer(talk, "a", instance="i"), Consumer(talk, "twin", instance="i")
    a.join()
    twin.join()
    a.heartbeat()
    a.heartbeat(instance_id="k")
    a.heartbeat(instance_id=None)
    twin.heartbeat(member_epoch=a.epoch)
    twin.leave()
    twin.leave(member_epoch=FOR_A_WHILE)
    a.heartbeat()


@conversation(CONSUMER_LEVELS)
def a_static_consumer_that_was_replaced(talk: Talk) -> None:
    a, back = Consumer(talk, "a", instance="i"), Consumer(talk, "back", instance="i")
    a.join()
    a.leave(member_epoch=FOR_A_WHILE)
    back.join()
    a.heartbeat(member_epoch=back.epoch)
    a.leave()
    a.leave(member_epoch=FOR_A_WHILE)
    a.join()
    a.commit({"three": {0: 1}}, generation_id_or_member_epoch=back.epoch)
    back.heartbeat()


@conversation(CONSUMER_LEVELS)
def a_static_consumer_comes_back_under_its_old_id(talk: Talk) -> None:
    a = Consumer(talk, "a", instance="i")
    a.join()
    a.leave(member_epoch=FOR_A_WHILE)
    a.join()
    a.owns()
    Desk(talk).describe_consumers("g")


@conversation(CONSUMER_LEVELS)
def a_static_consumer_comes_back_with_another_subscription(talk: Talk) -> None:
    a, back = Consumer(talk, "a", instance="i"), Consumer(talk, "back", instance="i", topics=["two"])
    a.join()
    a.owns()
    a.leave(member_epoch=FOR_A_WHILE)
    back.join()
    Desk(talk).describe_consumers("g")
    back.owns()


@conversation(CONSUMER_LEVELS)
def a_static_consumer_leaves_for_good(talk: Talk) -> None:
    a, b = Consumer(talk, "a", instance="i"), Consumer(talk, "b", instance="i")
    a.join()
    a.leave()
    Desk(talk).describe_consumers("g")
    b.join()
    b.leave(member_id="id-of-a")
    b.leave(instance_id=None)
    Desk(talk).describe_consumers("g")


@conversation(CONSUMER_LEVELS)
def a_consumer_without_an_instance_cannot_leave_for_a_while(talk: Talk) -> None:
    a = Consumer(talk, "a")
    a.join()
    a.leave(member_epoch=FOR_A_WHILE)
    a.leave(member_epoch=FOR_A_WHILE, instance_id="i")
    a.heartbeat(instance_id="i")
    a.heartbeat()


@conversation(CONSUMER_LEVELS)
def partitions_wait_for_a_static_consumer_that_is_away(talk: Talk) -> None:
    a, b = Consumer(talk, "a", instance="i"), Consumer(talk, "b")
    a.join()
    a.owns()
    a.leave(member_epoch=FOR_A_WHILE)
    b.join()
    b.heartbeat()
    Desk(talk).describe_consumers("g")
    back = Consumer(talk, "back", instance="i")
    back.join()
    back.owns()
    b.heartbeat()
    Desk(talk).describe_consumers("g")
