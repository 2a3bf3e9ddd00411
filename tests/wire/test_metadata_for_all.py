"""The reply about all topics is kept as bytes; it must never be older than the cluster."""

from headrace.protocol.message import ZERO_UUID
from headrace.protocol.schema.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.schema.metadata import MetadataRequest, MetadataResponse
from wire.raw import RawClient
from wire.requests import create_topic, fresh_name


def everything(raw: RawClient, *, operations: bool = False) -> MetadataResponse:
    request = MetadataRequest(topics=None, include_topic_authorized_operations=operations)
    reply: MetadataResponse = raw.ask(request, 12)
    return reply


def names(raw: RawClient) -> set[str | None]:
    return {topic.name for topic in everything(raw).topics}


def test_a_topic_is_there_from_its_creation_to_its_deletion(raw: RawClient) -> None:
    before = names(raw)
    create_topic(raw, name := fresh_name("seen"))

    assert names(raw) == before | {name}

    raw.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name, topic_id=ZERO_UUID)], timeout_ms=1000), 6)

    assert names(raw) == before


def test_what_was_asked_for_besides_the_topics_is_not_mixed_up(raw: RawClient) -> None:
    create_topic(raw, fresh_name("mixed"))

    operations = [
        {topic.topic_authorized_operations for topic in everything(raw, operations=asked).topics}
        for asked in (True, False, True)
    ]

    assert operations[0] == operations[2] != operations[1]
