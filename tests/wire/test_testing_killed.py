"""Consumers that are killed: when others get what they had, by the settings of a test's broker."""

import subprocess
import sys
import time

import pytest
from confluent_kafka import Consumer

from headrace.testing import Broker

PATIENCE_S = 30  # with a session of one second; Kafka's default is 45
MEMBER = """
import sys
from confluent_kafka import Consumer

consumer = Consumer({
    "bootstrap.servers": sys.argv[1], "group.id": "billing", "group.protocol": "consumer",
    "auto.offset.reset": "earliest", "enable.auto.commit": False,
})
consumer.subscribe(["orders"])
while (message := consumer.poll(1)) is None:
    pass
print(message.value().decode(), flush=True)
while True:
    consumer.poll(1)
"""


@pytest.mark.headrace(topics=["orders"], settings={"group.consumer.session.timeout.ms": 1000})
def test_what_a_killed_consumer_had_comes_again_when_its_short_session_has_ended(headrace: Broker) -> None:
    headrace.produce("orders", "tea")
    with subprocess.Popen(
        [sys.executable, "-c", MEMBER, headrace.bootstrap], stdout=subprocess.PIPE, text=True
    ) as member:
        assert member.stdout is not None
        assert member.stdout.readline() == "tea\n"
        member.kill()

    assert read_one(headrace.bootstrap) == b"tea"


def read_one(bootstrap: str) -> bytes | None:
    """The next record for another member of the group; None if none comes in time."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "billing",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["orders"])
    deadline = time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < deadline:
            if (message := consumer.poll(0.5)) is not None:
                assert message.error() is None, message.error()
                value = message.value()
                return None if value is None else bytes(value)
        return None
    finally:
        consumer.close()
