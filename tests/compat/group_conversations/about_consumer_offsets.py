"""Offsets of groups of consumers (KIP-848): commits and fetches with a member epoch."""

from compat.group_conversations import fresh_topics
from compat.group_conversations.consumer import Consumer
from compat.group_conversations.desk import Desk
from compat.group_conversations.stories import CONSUMER_LEVELS, conversation
from compat.group_conversations.talk import Talk
from compat.group_conversations.versions import commit_at


@conversation(CONSUMER_LEVELS)
def a_consumer_commits(talk: Talk) -> None:
    a, desk = Consumer(talk, "a"), Desk(talk)
    a.join()
    a.commit({"three": {0: 1, 5: 2}, "nowhere": {0: 1}})
    a.commit({"three": {1: 2}}, generation_id_or_member_epoch=a.epoch - 1)
    a.commit({"three": {1: 3}}, generation_id_or_member_epoch=a.epoch + 1)
    a.commit({"three": {1: 4}}, generation_id_or_member_epoch=-1)
    a.commit({"three": {1: 5}}, member_id="nobody")
    a.commit({"three": {1: 6}}, member_id="")
    a.commit({"three": {1: 7}}, group_instance_id="i")
    desk.commit("g", {"three": {1: 8}})
    desk.fetch("g", {"three": [0, 1]})
    a.leave()
    a.commit({"three": {1: 9}}, generation_id_or_member_epoch=2)
    desk.commit("g", {"three": {1: 10}})
    desk.fetch("g")


@conversation(CONSUMER_LEVELS)
def a_consumer_commits_with_the_epoch_of_before(talk: Talk) -> None:
    a, b = Consumer(talk, "a"), Consumer(talk, "b")
    a.join()
    a.owns()
    before = a.epoch
    b.join()
    a.heartbeat()
    a.commit({"three": {0: 1}}, generation_id_or_member_epoch=before)
    a.owns()
    with talk.aside():  # Kafka takes it from 4.3 on, since a has had the partition at both epochs (KIP-1251)
        a.commit({"three": {0: 2}}, generation_id_or_member_epoch=before)
    a.commit({"three": {0: 3, 2: 3}}, generation_id_or_member_epoch=before)
    a.commit({"three": {0: 4, 2: 4}})
    Desk(talk).fetch("g", {"three": [0, 1, 2]})


@conversation(CONSUMER_LEVELS)
def a_consumer_commits_with_a_version_that_has_no_epochs(talk: Talk) -> None:
    a, desk = Consumer(talk, "a"), Desk(talk)
    a.join()
    for version in (2, 5, 8):
        commit_at(version, a, {"three": {0: version}})
    desk.fetch("g", {"three": [0]})


@conversation(CONSUMER_LEVELS)
def a_consumer_fetches(talk: Talk) -> None:
    a, desk = Consumer(talk, "a"), Desk(talk)
    a.join()
    a.commit({"three": {0: 1}})
    wanted = {"three": [0, 1]}
    desk.fetch("g", wanted, member_id=a.member_id, member_epoch=a.epoch)
    desk.fetch("g", None, member_id=a.member_id, member_epoch=a.epoch)
    desk.fetch("g", wanted, member_id=a.member_id, member_epoch=a.epoch - 1)
    desk.fetch("g", wanted, member_id=a.member_id, member_epoch=a.epoch + 1)
    desk.fetch("g", None, member_id=a.member_id, member_epoch=a.epoch + 1)
    desk.fetch("g", wanted, member_id=a.member_id, member_epoch=-1)
    desk.fetch("g", wanted, member_id="nobody", member_epoch=a.epoch)
    desk.fetch("g", wanted, member_id="nobody", member_epoch=-1)
    desk.fetch("g", wanted, member_id="", member_epoch=a.epoch)
    desk.fetch("g", wanted)
    desk.fetch("unknown", wanted, member_id="nobody", member_epoch=1)


@conversation(CONSUMER_LEVELS)
def offsets_of_a_topic_that_was_deleted(talk: Talk) -> None:
    desk = Desk(talk)
    name = fresh_topics.make(talk, "short-lived", 1)
    desk.commit("g", {name: {0: 5}, "one": {0: 6}})
    fresh_topics.delete(talk, name)
    with talk.aside():  # what else is done when a topic goes takes a moment longer
        talk.until("its offsets are gone", lambda: len(desk.fetch("g").groups[0].topics) == 1)
    desk.fetch("g", {name: [0], "one": [0]})
    desk.fetch("g")
    desk.delete_offsets("g", {name: [0]})
    desk.commit("g", {name: {0: 7}})
