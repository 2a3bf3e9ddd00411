"""Administration of a cluster that wants to know who asks, also by ways in that only librdkafka knows."""

from collections.abc import Iterator

import pytest

from compat.kafka_tools.java import KafkaJava
from compat.secured_kafka import Files, SecuredKafka
from compat.secured_settings import TLS, TLS_USER
from headrace.client.admin import Admin
from headrace.client.admin_offsets import Span


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


@pytest.mark.parametrize(
    ("listener", "settings"),
    [
        ("TLS", TLS),
        ("BOTH", f"{TLS_USER} sasl.mechanism=SCRAM-SHA-512"),
        ("TLS", f"{TLS} ssl.cipher.suites=ECDHE-RSA-AES256-GCM-SHA384"),  # ours refuses to ignore it
    ],
)
def test_offsets_are_known_by_any_way_in(
    kafka: SecuredKafka, files: Files, listener: str, settings: str
) -> None:
    admin = Admin(kafka.addresses[listener], files.settings(settings))
    assert admin.offsets("orders") == {0: Span(0, 0)}
    assert admin.offsets_at("orders", 1) == {0: None}
    assert [each.next_offset for each in admin.describe_topic("orders").partitions] == [0]


def test_groups_are_known_to_who_may_ask(kafka: SecuredKafka, files: Files) -> None:
    admin = Admin(kafka.addresses["BOTH"], files.settings(f"{TLS_USER} sasl.mechanism=PLAIN"))
    admin.set_group_offsets("billing", {("orders", 0): 0})
    assert [each.name for each in admin.list_groups()] == ["billing"]
    assert admin.lag("billing") == {("orders", 0): 0}
    admin.delete_group("billing")
    assert admin.list_groups() == []
