"""ConsumerGroupHeartbeat (KIP-848): who is let in, and with what."""

from compat.group_conversations.brokers import MAX_SIZE
from compat.group_conversations.consumer import Consumer
from compat.group_conversations.desk import Desk
from compat.group_conversations.offsets import NO_TOPICS_ID
from compat.group_conversations.stories import CONSUMER_LEVELS, conversation
from compat.group_conversations.talk import Talk
from headrace.protocol.schema.consumer_group_heartbeat import TopicPartitions


@conversation(CONSUMER_LEVELS)
def a_consumer_joins_and_gets_everything(talk: Talk) -> None:
    a, desk = Consumer(talk, "a"), Desk(talk)
    a.join()
    desk.describe_consumers("g", operations=True)
    a.owns()
    a.heartbeat()
    desk.describe_consumers("g")
    desk.describe("g")
    desk.list()
    a.leave()
    desk.describe_consumers("g")
    desk.list()


@conversation(CONSUMER_LEVELS)
def a_consumer_without_an_id(talk: Talk) -> None:
    a = Consumer(talk, "a")
    a.member_id = ""
    a.join()
    a.heartbeat()
    Consumer(talk, "b").join(member_id="", member_epoch=1)


@conversation(CONSUMER_LEVELS)
def a_join_that_says_too_little(talk: Talk) -> None:
    a = Consumer(talk, "a")
    a.join(rebalance_timeout_ms=-1)
    a.join(topic_partitions=None)
    a.join(subscribed_topic_names=None)
    a.join(subscribed_topic_names=[])
    a.join(group_id="")
    a.join(group_id=" ")
    a.join(member_id=" ")
    a.join(instance_id="")
    a.join(rack_id="")
    a.join(server_assignor="")
    a.join(server_assignor="best")
    a.join(member_epoch=-3)
    a.join(member_epoch=-2)
    a.join(member_epoch=-1)
    a.join(member_epoch=1)
    a.join(rebalance_timeout_ms=0)
    Desk(talk).describe_consumers("g")
    Desk(talk).list()


@conversation(CONSUMER_LEVELS)
def a_join_that_owns_partitions_already(talk: Talk) -> None:
    a = Consumer(talk, "a")
    a.join(topic_partitions=a.partitions({"three": [0, 1]}))
    a.join(topic_partitions=[TopicPartitions(topic_id=NO_TOPICS_ID, partitions=[0])])


@conversation(CONSUMER_LEVELS)
def a_consumer_chooses_an_assignor(talk: Talk) -> None:
    for assignor in ("range", "uniform", "Range"):
        a = Consumer(talk, assignor, assignor)
        a.join(server_assignor=assignor)
        Desk(talk).describe_consumers(assignor)


@conversation(CONSUMER_LEVELS)
def most_votes_choose_the_assignor(talk: Talk) -> None:
    a, b, c = Consumer(talk, "a"), Consumer(talk, "b"), Consumer(talk, "c")
    a.join(server_assignor="range")
    b.join(server_assignor="uniform")
    Desk(talk).describe_consumers("g")
    c.join(server_assignor="uniform")
    Desk(talk).describe_consumers("g")
    a.heartbeat(server_assignor="uniform")
    a.heartbeat(server_assignor="none")
    Desk(talk).describe_consumers("g")


@conversation(CONSUMER_LEVELS)
def a_consumer_of_topics_that_are_not_there(talk: Talk) -> None:
    a, desk = Consumer(talk, "a", topics=["nowhere"]), Desk(talk)
    a.join()
    desk.describe_consumers("g")
    a.heartbeat(subscribed_topic_names=["nowhere", "one"])
    desk.describe_consumers("g")
    b = Consumer(talk, "b", "h", topics=["", "a/b"])
    b.join()


@conversation(CONSUMER_LEVELS)
def a_group_of_consumers_that_is_full(talk: Talk) -> None:
    for number in range(MAX_SIZE + 1):
        Consumer(talk, f"c{number}").join()
    Consumer(talk, "c0").join()
    Consumer(talk, "c1").leave()
    Consumer(talk, f"c{MAX_SIZE}").join()


@conversation(CONSUMER_LEVELS)
def epochs_that_do_not_fit(talk: Talk) -> None:
    a, b = Consumer(talk, "a"), Consumer(talk, "b")
    a.heartbeat(member_epoch=1)
    a.join()
    epoch = a.epoch
    a.heartbeat(member_epoch=epoch + 1)
    a.heartbeat(member_epoch=epoch + 10)
    b.join()
    a.owns({"three": [0]})
    a.heartbeat()
    a.heartbeat(member_epoch=epoch - 1)
    a.heartbeat(member_epoch=epoch)
    a.heartbeat(member_id="nobody")
    a.heartbeat(group_id="nowhere")
    a.heartbeat()


@conversation(CONSUMER_LEVELS)
def consumers_that_leave(talk: Talk) -> None:
    a, b, desk = Consumer(talk, "a"), Consumer(talk, "b"), Desk(talk)
    a.leave()
    a.join()
    b.join()
    b.leave(member_id="nobody")
    b.leave(member_epoch=-2)
    b.leave()
    b.leave()
    desk.describe_consumers("g")
    a.heartbeat()
    a.leave()
    desk.describe_consumers("g")
    desk.delete("g")
    desk.describe_consumers("g")
    desk.list()
    a.join()


@conversation(CONSUMER_LEVELS)
def a_consumer_joins_again_with_epoch_zero(talk: Talk) -> None:
    a, b = Consumer(talk, "a"), Consumer(talk, "b")
    a.join()
    a.owns()
    a.join()
    b.join()
    a.heartbeat()
    a.join()
    a.heartbeat()
    Desk(talk).describe_consumers("g")


@conversation(CONSUMER_LEVELS)
def groups_of_consumers_that_are_not_there(talk: Talk) -> None:
    desk = Desk(talk)
    desk.describe_consumers("g")
    desk.describe_consumers("g", "h", "", operations=True)
    desk.describe_consumers()
    desk.commit("classic", {"three": {0: 1}})
    desk.describe_consumers("classic")


@conversation(CONSUMER_LEVELS)
def groups_of_consumers_are_listed_and_deleted(talk: Talk) -> None:
    a, desk = Consumer(talk, "a"), Desk(talk)
    a.join()
    desk.list(types=["Consumer"])
    desk.list(states=["stable"])
    desk.list(states=["Assigning", "reconciling"])
    desk.list(types=["classic"])
    desk.delete("g")
    desk.delete_offsets("g", {"three": [0], "two": [0]})
    a.leave()
    desk.list(states=["empty"])
    desk.delete("g")
    desk.list()
