"""A client that leaves in the middle of a change to the cluster leaves nothing half done behind."""

import socket
import struct
import time

from headrace.protocol.message import ZERO_UUID
from headrace.protocol.schema.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.schema.metadata import MetadataRequest
from wire.process import BrokerProcess
from wire.raw import RawClient, frame_of
from wire.requests import create_topic, fetch, produce_request, records_in

ROUNDS = 20


def ask_and_leave(broker: BrokerProcess, name: str, after_s: float) -> None:
    """Ask for a topic's deletion and reset the connection."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name, topic_id=ZERO_UUID)], timeout_ms=1000)
    with RawClient(broker.bootstrap) as client:
        client.socket.sendall(frame_of(request, 6))
        time.sleep(after_s)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def topics(broker: BrokerProcess) -> set[str | None]:
    with RawClient(broker.bootstrap) as client:
        return {topic.name for topic in client.ask(MetadataRequest(topics=None), 12).topics}


def test_a_topic_made_again_after_an_abandoned_deletion_survives_a_restart(own_broker: BrokerProcess) -> None:
    names = [f"again-{number}" for number in range(ROUNDS)]
    for number, name in enumerate(names):
        with RawClient(own_broker.bootstrap) as client:
            create_topic(client, name)
        ask_and_leave(own_broker, name, after_s=0.001 * number)
    deadline = time.monotonic() + 30
    while topics(own_broker) & set(names) and time.monotonic() < deadline:
        time.sleep(0.02)
    with RawClient(own_broker.bootstrap) as client:
        for name in names:
            create_topic(client, name)
            assert client.ask(produce_request(name), 9).responses[0].partition_responses[0].error_code == 0

    own_broker.stop()
    own_broker.start()

    assert set(names) <= topics(own_broker)
    with RawClient(own_broker.bootstrap) as client:
        assert all(len(records_in(fetch(client, name))) == 1 for name in names)


def test_closed_segments_are_flushed_without_being_told(own_broker: BrokerProcess) -> None:
    with RawClient(own_broker.bootstrap) as client:
        create_topic(client, "rolls", segment_bytes="1000")
        for _ in range(30):
            client.ask(produce_request("rolls"), 9)
    deadline = time.monotonic() + 30
    flushed = 0
    while not flushed and time.monotonic() < deadline:
        time.sleep(0.05)
        checkpoint = next(own_broker.data.rglob("recovery-point-offset-checkpoint"), None)
        lines = [] if checkpoint is None else checkpoint.read_text().splitlines()
        flushed = max((int(line.split(" ")[2]) for line in lines if line.startswith("rolls ")), default=0)

    assert flushed > 0
