"""`headrace gateway` before a secured Apache Kafka, by a profile and by --command-config."""

import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest
import requests

import headrace.arrow
from cli.command import Command
from cli.secure_up import Secured
from compat.kafka_tools.samples import Sample
from compat.secured_kafka import PASSWORD, USER, Files, SecuredKafka
from compat.secured_settings import WAYS
from headrace import ConnectionSettings
from headrace.client.properties import to_properties
from spark.topics import write
from support.process import ServerProcess

PAGES: Final = {
    "/ui/": "Under-replicated",
    "/ui/topics": "secured-pages",
    "/ui/topics/secured-pages": "a message to find",
    "/ui/topics/secured-pages/partitions": "Next offset",
    "/ui/topics/secured-pages/settings": "log compaction",
    "/ui/topics/secured-pages/groups": "No group reads this topic",
    "/ui/topics/secured-pages/producers": "has no active producers",
    "/ui/brokers/1": "Broker 1",
    "/ui/brokers/1/drain": "besides broker 1 no broker is alive",
    "/ui/moves": "No partition is being moved",
    "/ui/groups": "Groups",
    "/ui/schemas": "Register a schema",
    "/ui/transactions": "Transactions",
    "/ui/quotas": "Quotas",
    "/ui/acls": "No authorizer is configured",
    "/ui/users": "SCRAM-SHA-512",
    "/ui/new-topic": "log compaction",
    "/ui/pipelines": "No pipeline has run on this cluster",
    "/metrics": "kafka_brokers 1.0",
}
CREDENTIALS: Final = (USER, PASSWORD)


@pytest.fixture(scope="module")
def kafka(secured_kafka: SecuredKafka) -> SecuredKafka:
    secured_kafka.create_topic("secured-pages", partitions=2)
    record = Sample(key=b"k", value=b"a message to find", timestamp_ms=int(time.time() * 1000))
    write(secured_kafka.bootstrap, "secured-pages", [record], 1)
    return secured_kafka


def settings(kafka: SecuredKafka, files: Files, way: str) -> dict[str, str]:
    listener, text = WAYS[way]
    return files.settings(text) | {"bootstrap.servers": kafka.addresses[listener]}


@pytest.fixture(scope="module")
def gateway(
    kafka: SecuredKafka, secured_files: Files, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The gateway's URL; its settings are a profile."""
    home = tmp_path_factory.mktemp("home")
    given = settings(kafka, secured_files, "scram_over_tls")
    options = [f"-X{name}={value}" for name, value in given.items()]
    added = Command("")("profile", "add", "kafka", *options, environment={"XDG_CONFIG_HOME": str(home)})
    assert (added.status, added.err) == (0, "")
    file = home / "headrace" / "profiles" / "kafka.properties"
    arguments = ["gateway", "--port", "0", "--command-config", str(file)]
    with ServerProcess(arguments, home / "gateway.log") as process:
        yield process.http


def get(url: str, **options: Any) -> requests.Response:
    return requests.get(url, timeout=60, allow_redirects=False, **options)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_shown(gateway: str, path: str) -> None:
    answer = get(gateway + path, auth=CREDENTIALS)
    assert (answer.status_code, PAGES[path] in answer.text) == (200, True), answer.text
    assert "&lt;a href" not in answer.text  # Kafka's descriptions are HTML


def test_commands_on_pages_mention_the_settings_that_they_need(kafka: SecuredKafka, gateway: str) -> None:
    at = f"--bootstrap {kafka.addresses['BOTH']} --command-config client.properties"
    assert at in get(f"{gateway}/ui/groups", auth=CREDENTIALS).text


def test_messages_are_browsed_by_the_api(gateway: str) -> None:
    found = get(f"{gateway}/api/v1/topics/secured-pages/messages?last=3", auth=CREDENTIALS).json()
    (message,) = found["messages"]
    assert (message["partition"], message["offset"], message["value"]) == (1, 0, "a message to find")
    assert "secured-pages" in get(f"{gateway}/topics", auth=CREDENTIALS).json()


def test_nobody_is_served_without_a_password(gateway: str) -> None:
    for credentials in (None, (USER, "guessed")):
        answer = get(f"{gateway}/api/v1/topics", auth=credentials)
        assert answer.status_code == 401, answer.text


ORDER: Final = """{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}]}"""


def test_the_registry_that_the_settings_name_decodes_with_the_users_password(
    kafka: SecuredKafka, secured_files: Files, gateway: str, tmp_path: Path
) -> None:
    given = settings(kafka, secured_files, "scram_over_tls")
    given |= {"schema.registry.url": gateway, "basic.auth.credentials.source": "SASL_INHERIT"}
    file, schema = tmp_path / "client.properties", tmp_path / "order.avsc"
    file.write_text(to_properties(given))
    schema.write_text(ORDER)
    run = Secured(file)
    run.ok("topic", "create", "secured-orders")
    run.ok("schema", "register", "secured-orders-value", str(schema))
    run.ok("produce", "secured-orders", '{"id": 7, "price": "1.50"}')

    assert run.ok("consume", "secured-orders", "--exit-at-end").text == '{"id":7,"price":"1.50"}\n'
    query = 'select value.price * 2 as twice from "secured-orders"'
    assert run.ok("sql", query, "--json").json == {"twice": "3.00"}
    for bootstrap in (given, ConnectionSettings.load(file)):
        found = headrace.arrow.read("secured-orders", bootstrap, schema="registry").read_all()
        assert found["value"].to_pylist() == [{"id": 7, "price": Decimal("1.50")}]


def test_a_gateway_with_a_certificate_serves_nobody_unless_that_is_wanted(
    kafka: SecuredKafka, secured_files: Files, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    given = settings(kafka, secured_files, "a_keystore")
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    gateway = ("gateway", "--port", "0", "--command-config", str(file))

    assert "the gateway cannot authenticate users by security.protocol=SSL" in Command("")(*gateway).complaint
    with ServerProcess([*gateway, "--allow-unauthenticated"], tmp_path / "gateway.log") as process:
        assert "a message to find" in get(f"{process.http}/ui/topics/secured-pages").text
