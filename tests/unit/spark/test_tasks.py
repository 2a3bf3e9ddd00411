"""A task has what executors need to know of its ranges."""

from headrace.client.wire.connection import Address
from headrace.protocol.ids import TopicPartition
from headrace.spark.source import Task
from headrace.tables.reader.offsets import Range


def test_a_task_knows_the_ids_of_its_topics_only() -> None:
    ranges = [Range(TopicPartition("orders", index), 10, 12) for index in range(2)]

    assert Task(ranges, {"orders": "one", "clicks": "two"}, Address("one", 9092)).topic_ids == {
        "orders": "one"
    }
    assert Task(ranges, {}).topic_ids == {}
