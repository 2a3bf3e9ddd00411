"""Clusters that tasks share: one for each user and kind, none for a forked process."""

import os

import pytest

from headrace.client.wire.security import PLAINTEXT, Security
from headrace.spark.shared import MAX_CLUSTERS, ClusterKey, SharedClusters, shared_cluster
from headrace.tables.reader.cluster import ClusterConnections

ALICE = Security.of(
    {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "one",
        "ssl.truststore.location": "/ca.pem",
        "ssl.keystore.location": "/keys.pem",
        "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256",
    }
)
KEY = ClusterKey("one:9092", ALICE, "spark")


def test_tasks_with_the_same_settings_share_a_cluster() -> None:
    assert shared_cluster("one:9092", PLAINTEXT, "a") is shared_cluster("one:9092", PLAINTEXT, "a")


@pytest.mark.parametrize(
    "other",
    [
        KEY._replace(bootstrap="two:9092"),
        KEY._replace(client_id="another"),
        KEY._replace(creates_topics=True),
        KEY._replace(security=PLAINTEXT),
        KEY._replace(
            security=Security.of(
                {
                    "security.protocol": "SASL_PLAINTEXT",
                    "sasl.mechanism": "PLAIN",
                    "sasl.username": "alice",
                    "sasl.password": "one",
                }
            )
        ),
    ],
)
def test_tasks_with_other_settings_do_not(other: ClusterKey) -> None:
    clusters = SharedClusters()

    assert clusters.get(KEY) is not clusters.get(other)
    assert clusters.get(KEY) is clusters.get(KEY)


def test_a_user_with_another_password_has_other_connections() -> None:
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "alice"}
    clusters = SharedClusters()
    first, second = (
        clusters.get(KEY._replace(security=Security.of(settings | {"sasl.password": each}))) for each in "ab"
    )

    assert first is not second


def test_the_cluster_that_was_not_used_for_longest_is_closed() -> None:
    clusters = SharedClusters()
    keys = [KEY._replace(client_id=str(number)) for number in range(MAX_CLUSTERS)]
    known = [clusters.get(key) for key in keys]
    assert clusters.get(keys[0]) is known[0]
    clusters.get(KEY)

    assert clusters.get(keys[0]) is known[0]
    assert clusters.get(keys[2]) is known[2]
    assert clusters.get(keys[1]) is not known[1]


def test_a_forked_process_has_clusters_of_its_own() -> None:
    ours: ClusterConnections = shared_cluster("one:9092", PLAINTEXT, "forked")
    child = os.fork()
    if child == 0:
        os._exit(int(shared_cluster("one:9092", PLAINTEXT, "forked") is ours))
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert shared_cluster("one:9092", PLAINTEXT, "forked") is ours
