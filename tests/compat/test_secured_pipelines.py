"""A pipeline's topics, groups and history on a cluster that wants to know who asks."""

from contextlib import closing
from typing import Any, Final

import pytest

from compat.secured_kafka import Files, SecuredKafka
from compat.secured_settings import TLS_USER
from headrace.client.errors import ClientError
from headrace.client.groups.admin import GroupAdmin
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.security import Security
from headrace.pipeline import Json, Pipeline, Topic
from headrace.pipeline.observers import Groups, History
from headrace.pipeline.progress import TOPIC, Progress
from headrace.pipeline.topics import create, missing_topics
from headrace.spark.errors import SparkError
from headrace.tables.reader.cluster import ClusterConnections

WITHOUT: Final[dict[str, str]] = {}


def declared(client: dict[str, str]) -> Pipeline:
    pipeline = Pipeline("secured", client=client)
    pipeline.source("orders", topic="orders", decode=Json("n int"))

    @pipeline.sink(Topic("results", replicas=1))
    def results(orders: Any) -> Any:
        return orders

    return pipeline


def test_whoever_may_use_the_cluster_has_what_a_pipeline_needs(
    secured_kafka: SecuredKafka, secured_files: Files
) -> None:
    client = secured_files.settings(f"{TLS_USER} sasl.mechanism=PLAIN")
    at, pipeline = secured_kafka.addresses["BOTH"], declared(client)

    create(pipeline, at, missing_topics(pipeline, at))
    batch = Progress(
        pipeline="secured", query="secured.results", event="batch", at_ms=1, offsets={"orders": {"0": 0}}
    )
    for observer in (Groups(at, client), History(at, client)):
        with closing(observer):
            observer(batch)

    with closing(ClusterConnections(at, Security.of(client))) as cluster:
        assert {"results", "orders.dead-letters", TOPIC} <= cluster.topics().keys()
    assert [each.name for each in GroupAdmin(Brokers.configured(at, client)).list_groups()] == [
        "secured.results"
    ]
    assert missing_topics(pipeline, at) == []


def test_nobody_else_has(secured_kafka: SecuredKafka) -> None:
    with pytest.raises((SparkError, ClientError)):
        missing_topics(declared(WITHOUT), secured_kafka.addresses["BOTH"])
