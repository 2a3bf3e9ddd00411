"""OffsetCommit: by whom, in which state, and what is refused."""

from compat.group_conversations.brokers import MAX_METADATA_BYTES
from compat.group_conversations.classic import Member, assembled, stable
from compat.group_conversations.desk import Desk
from compat.group_conversations.offsets import topics_to_commit
from compat.group_conversations.stories import conversation
from compat.group_conversations.talk import Talk
from headrace.protocol.schema.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic


@conversation()
def a_consumer_without_a_group_commits(talk: Talk) -> None:
    desk = Desk(talk)
    desk.commit("g", {"three": {0: 10, 2: (20, "so far")}, "one": {0: (30, None)}})
    desk.fetch("g", {"three": [0, 1, 2], "one": [0]})
    desk.commit("g", {"three": {0: 5}})
    desk.fetch("g", {"three": [0, 2]})
    desk.describe("g")
    desk.list()


@conversation()
def commits_to_a_group_that_is_not_there(talk: Talk) -> None:
    desk = Desk(talk)
    desk.commit("g", {"three": {0: 1}}, generation_id_or_member_epoch=1, member_id="somebody")
    desk.commit("g", {"three": {0: 1}}, generation_id_or_member_epoch=0)
    desk.commit("g", {"three": {0: 1}}, member_id="somebody")
    desk.commit("", {"three": {0: 1}})
    desk.fetch("g", {"three": [0]})
    desk.describe("g")


@conversation()
def commits_to_topics_and_partitions_that_are_not_there(talk: Talk) -> None:
    desk = Desk(talk)
    desk.commit("g", {"nowhere": {0: 1, 1: 1}, "one": {0: 1}})
    desk.commit("g", {"one": {1: 1, -1: 1, 0: 2}})
    desk.commit("g", {})
    desk.commit("g", {"one": {}})
    desk.commit("g", {"": {0: 1}})
    desk.fetch("g", {"one": [0, 1]})


@conversation()
def offsets_and_texts_at_their_limits(talk: Talk) -> None:
    desk = Desk(talk)
    fits, too_long = "x" * MAX_METADATA_BYTES, "x" * (MAX_METADATA_BYTES + 1)
    desk.commit("g", {"three": {0: (1, fits), 1: (1, too_long), 2: (1, "ü" * MAX_METADATA_BYTES)}})
    desk.commit("g", {"two": {0: -1, 1: 2**63 - 1}})
    desk.commit("g", {"one": {0: -7}})
    desk.fetch("g", {"three": [0, 1, 2], "two": [0, 1], "one": [0]})


@conversation()
def one_partition_twice_in_a_request(talk: Talk) -> None:
    desk = Desk(talk)
    desk.commit("g", {"three": {0: 1}})
    twice = [topics_to_commit({"three": {0: offset}}, talk.topic_ids)[0] for offset in (2, 3)]
    desk.commit("g", {}, topics=twice)
    desk.fetch("g", {"three": [0, 0]})


@conversation()
def a_member_commits_in_each_state(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    assembled(a)
    a.commit({"three": {0: 1}})
    a.sync({a: b"all"})
    a.commit({"three": {0: 2}})
    entering = b.enter_call()
    a.commit({"three": {0: 3}})
    a.join()
    entering.answer()
    a.commit({"three": {0: 4}})
    syncing = b.sync_call()
    a.sync({a: b"1", b: b"2"})
    syncing.answer()
    b.commit({"three": {1: 5}})
    Desk(talk).fetch("g", {"three": [0, 1]})


@conversation()
def a_member_commits_as_somebody_else(talk: Talk) -> None:
    a = Member(talk, "a")
    stable(a)
    a.commit({"three": {0: 1}}, generation_id_or_member_epoch=0)
    a.commit({"three": {0: 2}}, generation_id_or_member_epoch=2)
    a.commit({"three": {0: 3}}, generation_id_or_member_epoch=-1)
    a.commit({"three": {0: 4}}, member_id="nobody")
    a.commit({"three": {0: 5}}, member_id="")
    a.commit({"three": {0: 6}}, group_id="")
    Desk(talk).commit("g", {"three": {0: 7}})
    Desk(talk).fetch("g", {"three": [0]})


@conversation()
def outsiders_commit_when_everybody_has_left(talk: Talk) -> None:
    a = Member(talk, "a")
    stable(a)
    a.leave()
    Desk(talk).commit("g", {"three": {0: 7}})
    a.commit({"three": {0: 8}})
    Desk(talk).fetch("g", {"three": [0]})
    Desk(talk).describe("g")


@conversation()
def a_group_of_another_type_commits(talk: Talk) -> None:
    a = Member(talk, "a", protocols=[("default", b"hello")])
    a.join(protocol_type="connect")
    if talk.level >= 4:
        a.join(protocol_type="connect")
    a.sync({a: b"all"}, protocol_type="connect")
    a.commit({"three": {0: 8}})
    Desk(talk).fetch("g", {"three": [0]})


@conversation(range(2, 5))
def a_commit_with_a_time_to_keep_it(talk: Talk) -> None:
    desk = Desk(talk)
    desk.commit("g", {"three": {0: 1}}, retention_time_ms=3_600_000)
    desk.fetch("g", {"three": [0]})


@conversation(range(6, 11))
def leader_epochs_are_kept(talk: Talk) -> None:
    desk = Desk(talk)
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=index, committed_leader_epoch=epoch, committed_metadata=""
        )
        for index, epoch in enumerate((0, 7, -1))
    ]
    topic = OffsetCommitRequestTopic(name="three", topic_id=talk.topic_ids["three"], partitions=partitions)
    desk.commit("g", {}, topics=[topic])
    desk.fetch("g", {"three": [0, 1, 2]})
