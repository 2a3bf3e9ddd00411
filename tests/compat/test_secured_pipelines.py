"""A pipeline's topics, groups and history on a cluster that wants to know who asks."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import pytest

from compat.kafka_tools.java import KafkaJava
from compat.secured_kafka import Files, SecuredKafka
from compat.secured_settings import TLS_USER
from headrace.client.errors import ClientError
from headrace.client.group_admin import GroupAdmin
from headrace.client.security import Security
from headrace.pipeline import Json, Pipeline, Topic
from headrace.pipeline.creating import create, missing_topics
from headrace.pipeline.observing import Groups, History
from headrace.pipeline.progress import TOPIC, Progress
from headrace.spark.cluster import Cluster
from headrace.spark.errors import SparkError

WITHOUT: Final[dict[str, str]] = {}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def kafka(
    kafka_java: KafkaJava, files: Files, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredKafka]:
    with SecuredKafka(kafka_java, tmp_path_factory.mktemp("kafka"), files) as server:
        server.add_user()
        server.create_topic("orders")
        yield server


def declared(client: dict[str, str]) -> Pipeline:
    pipeline = Pipeline("secured", client=client)
    pipeline.source("orders", topic="orders", decode=Json("n int"))

    @pipeline.sink(Topic("results", replicas=1))
    def results(orders: Any) -> Any:
        return orders

    return pipeline


def test_whoever_may_use_the_cluster_has_what_a_pipeline_needs(kafka: SecuredKafka, files: Files) -> None:
    client = files.settings(f"{TLS_USER} sasl.mechanism=PLAIN")
    at, pipeline = kafka.addresses["BOTH"], declared(client)

    create(pipeline, at, missing_topics(pipeline, at))
    batch = Progress(
        pipeline="secured", query="secured.results", event="batch", at_ms=1, offsets={"orders": {"0": 0}}
    )
    for observer in (Groups(at, client), History(at, client)):
        with closing(observer):
            observer(batch)

    with closing(Cluster(at, Security.of(client))) as cluster:
        assert {"results", "orders.dead-letters", TOPIC} <= cluster.topics().keys()
    assert [each.name for each in GroupAdmin(at, client).list_groups()] == ["secured.results"]
    assert missing_topics(pipeline, at) == []


def test_nobody_else_has(kafka: SecuredKafka) -> None:
    with pytest.raises((SparkError, ClientError)):
        missing_topics(declared(WITHOUT), kafka.addresses["BOTH"])
