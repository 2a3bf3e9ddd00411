"""docs/formats.md promises what is in ZooKeeper; this is it."""

import re
from pathlib import Path
from typing import Any

from headrace.coordination.processes import ProcessIdentity
from headrace.coordination.schema_znodes import SchemaSubject, SchemaText
from headrace.coordination.znodes import (
    BrokerRegistration,
    ClusterId,
    ClusterSecret,
    Config,
    ConfigChange,
    Controller,
    ControllerEpoch,
    PartitionState,
    ProducerIdBlock,
    TopicAssignment,
    clients_of,
)
from headrace.security.listeners import Endpoint

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"
AT_MS = 1_700_000_000_000


def written() -> dict[str, str]:
    change = ConfigChange(entity="topics/orders")
    nodes: list[Any] = [
        ClusterId(id="kFg2n0eYSgWGzSrTbcEJpQ"),
        ClusterSecret(secret=bytes(range(4))),
        BrokerRegistration(
            broker_id=1,
            endpoints=(Endpoint("PLAINTEXT", "10.0.0.1", 9092),),
            timestamp_ms=AT_MS,
            rack="a",
            process=ProcessIdentity(
                "66873efe-c2e2-4f57-93ed-4f3d70da66a3", "pid:[4026531836]", pid=4711, start_time=93122
            ),
        ),
        Controller(broker_id=1, timestamp_ms=AT_MS),
        ControllerEpoch(epoch=3),
        TopicAssignment(topic="orders", topic_id=bytes(range(16)), replicas={0: [1, 2, 3]}),
        PartitionState(
            topic="orders",
            partition=0,
            leader=1,
            leader_epoch=4,
            isr=[1, 2],
            controller_epoch=3,
            elr=[3],
            broker_epochs={1: 17, 2: 21},
        ),
        Config(kind="topics", name="orders", values={"retention.ms": "86400000"}),
        Config(kind="users", name="alice", values={"producer_byte_rate": "1000000"}),
        Config(kind=clients_of("alice"), name="", values={"request_percentage": "50.0"}),
        ProducerIdBlock(broker_id=1, first=AT_MS, last=AT_MS + 999),
        SchemaSubject(subject="orders-value", versions={1: 7, 2: 9}, deleted=[1]),
        SchemaText(name="7", kind="AVRO", text='"string"', references=[]),
    ]
    found = {node.path: node.encode().decode() for node in nodes}
    return found | {f"{change.prefix}0000000000": change.encode().decode()}


def test_every_znode_of_the_page_is_as_the_code_writes_it() -> None:
    section = PAGE.read_text("utf-8").partition("## In ZooKeeper")[2].partition("\n## ")[0]
    (block,) = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    shown = {}
    for path, content in re.findall(r"^(/\S+)\n((?:    .*\n)+)", block, re.MULTILINE):
        shown[path] = "".join(line.strip() for line in content.splitlines())

    assert shown == written()
