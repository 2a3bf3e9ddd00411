"""`headrace up --secure`: certificates, an administrator, and a cluster that others cannot enter."""

import asyncio
import json
import re
import ssl
import stat
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiokafka
import pytest
import requests
from confluent_kafka import Consumer as RdkafkaConsumer
from confluent_kafka import Producer as RdkafkaProducer

import headrace.arrow
from cli.command import Command
from cli.secure_up import Secured, administrator
from headrace import JSON, Admin, Consumer, Producer
from headrace.client.errors import Refused
from headrace.client.properties import parse_properties
from support.process import ClusterProcess, NotReady, UpProcess
from wire.kafka_python import KafkaConsumer, KafkaProducer
from wire.requests import fresh_name


@pytest.fixture(scope="module")
def secure_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    with UpProcess(tmp_path_factory.mktemp("secure"), arguments=["--secure"]) as process:
        yield process
        assert process.running, process.log_tail()
        assert " ERROR " not in process.log.read_text(), process.log_tail()


@pytest.fixture
def admin(secure_up: UpProcess) -> Secured:
    return administrator(secure_up)


def librdkafka_settings(up: UpProcess) -> dict[str, str]:
    """The file as a program reads it that knows no escapes."""
    lines = (up.data / "client.librdkafka.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_secrets_are_for_their_owner_alone(secure_up: UpProcess) -> None:
    files = [
        "client.properties",
        "client.librdkafka.properties",
        "delegation-token.key",
        "certs/ca.key",
        "certs/broker-1.pem",
    ]
    assert {name: mode(secure_up.data / name) for name in files} == dict.fromkeys(files, 0o600)
    assert mode(secure_up.data / "broker-1") == 0o700
    assert mode(secure_up.data / "coordinator") == 0o700


def test_no_password_is_printed_or_logged(secure_up: UpProcess) -> None:
    secrets = [
        librdkafka_settings(secure_up)["sasl.password"],
        (secure_up.data / "delegation-token.key").read_text(),
    ]
    assert min(map(len, secrets)) >= 32
    said = [secure_up.log, *secure_up.data.glob("logs/*")]
    assert not [each for each in said for secret in secrets if secret in each.read_text()]


def test_it_prints_how_to_connect(secure_up: UpProcess) -> None:
    said = secure_up.log.read_text()
    assert f"headrace --command-config {secure_up.data}/client.properties topic list" in said
    assert f"kcat -F {secure_up.data}/client.librdkafka.properties -L" in said


def test_the_gateway_serves_https_to_users_only(secure_up: UpProcess) -> None:
    assert secure_up.http.startswith("https://")
    settings = librdkafka_settings(secure_up)
    user = (settings["sasl.username"], settings["sasl.password"])

    with requests.Session() as client:
        client.trust_env, client.verify = False, settings["ssl.ca.location"]

        def get(path: str, auth: tuple[str, str] | None = None) -> requests.Response:
            return client.get(secure_up.http + path, auth=auth, timeout=60)

        assert get("/healthz").status_code == 200
        assert get("/topics").status_code == 401
        assert get("/topics", ("admin", "wrong")).status_code == 401
        assert get("/topics", user).status_code == 200
        assert get("/subjects", user).json() == []


def test_a_certificate_is_enough_for_curl(secure_up: UpProcess, admin: Secured) -> None:
    topic, certs = fresh_name("curl"), secure_up.data / "certs"
    Command("").ok("certs", "client", "--name", "carol", "--dir", str(certs))
    admin.ok("topic", "create", topic)
    admin.ok("topic", "create", f"{topic}-other")

    def curl(*arguments: str) -> Any:
        tls = ["--cacert", str(certs / "ca.pem"), "--cert", str(certs / "carol.pem")]
        command = ["curl", "--silent", "--show-error", "--noproxy", "*", *tls, *arguments]
        return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)

    assert curl(f"{secure_up.http}/topics") == []
    admin.ok("acl", "allow", "User:CN=carol", "--producer", "--topic", topic)
    body = ["-H", "content-type: application/vnd.kafka.json.v2+json", "-d", '{"records": [{"value": "tea"}]}']
    assert curl(f"{secure_up.http}/topics") == [topic]
    assert curl(f"{secure_up.http}/topics/{topic}", *body)["offsets"][0]["offset"] == 0
    assert curl(f"{secure_up.http}/topics/{topic}-other", *body)["error_code"] == 40301
    assert admin.ok("consume", topic, "--exit-at-end").text.strip() == '"tea"'


def test_the_command_line_works_at_once(admin: Secured) -> None:
    topic = fresh_name("cli")
    admin.ok("topic", "create", topic)
    admin.ok("produce", topic, "one", "two")
    assert admin.ok("consume", topic, "--exit-at-end").text.split() == ["one", "two"]
    assert admin.ok("consume", topic, "--group", topic, "--exit-at-end").text.split() == ["one", "two"]


def test_the_sdk_works_at_once(admin: Secured) -> None:
    topic = fresh_name("sdk")
    with Admin(admin.connection) as client:
        client.create_topic(topic)
    with Producer(admin.connection, value=JSON) as producer:
        producer.send(topic, {"n": 1})
    with Consumer(admin.connection, [topic], value=JSON, group=topic) as consumer:
        assert [each.value for each in consumer.read(stop_at_end=True)] == [{"n": 1}]


def test_confluent_kafka_works_with_its_file(secure_up: UpProcess, admin: Secured) -> None:
    topic = fresh_name("confluent")
    admin.ok("topic", "create", topic)
    settings = librdkafka_settings(secure_up)
    producer = RdkafkaProducer(settings)
    producer.produce(topic, b"v")
    assert producer.flush(30) == 0
    consumer = RdkafkaConsumer(settings | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        message = consumer.poll(30)
        assert message is not None
        assert (message.error(), message.value()) == (None, b"v")
    finally:
        consumer.close()


def test_kafka_python_works_with_the_same_values(secure_up: UpProcess, admin: Secured) -> None:
    topic = fresh_name("kafkapython")
    admin.ok("topic", "create", topic)
    settings = librdkafka_settings(secure_up)
    common = {
        "bootstrap_servers": settings["bootstrap.servers"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": settings["sasl.username"],
        "sasl_plain_password": settings["sasl.password"],
        "ssl_cafile": settings["ssl.ca.location"],
    }
    producer = KafkaProducer(**common)
    producer.send(topic, b"v").get(30)
    producer.close()
    consumer = KafkaConsumer(
        topic, auto_offset_reset="earliest", group_id=topic, consumer_timeout_ms=30_000, **common
    )
    try:
        assert next(consumer).value == b"v"
    finally:
        consumer.close()


def test_aiokafka_works_with_the_same_values(secure_up: UpProcess, admin: Secured) -> None:
    topic = fresh_name("aiokafka")
    admin.ok("topic", "create", topic)
    settings = librdkafka_settings(secure_up)

    async def write_and_read() -> object:
        common = {
            "bootstrap_servers": settings["bootstrap.servers"],
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": settings["sasl.username"],
            "sasl_plain_password": settings["sasl.password"],
            "ssl_context": ssl.create_default_context(cafile=settings["ssl.ca.location"]),
        }
        async with aiokafka.AIOKafkaProducer(**common) as producer:
            await producer.send_and_wait(topic, b"v")
        consumer = aiokafka.AIOKafkaConsumer(topic, auto_offset_reset="earliest", group_id=topic, **common)
        async with consumer:
            return (await consumer.getone()).value

    assert asyncio.run(write_and_read()) == b"v"


def test_who_does_not_authenticate_gets_nothing(secure_up: UpProcess, admin: Secured) -> None:
    assert "is security.protocol=PLAINTEXT right?" in Command(secure_up.bootstrap)("topic", "list").complaint
    with pytest.raises(Refused):
        Admin(admin.as_user("nobody", "guessed").connection)


def test_a_user_may_do_what_an_acl_allows_and_no_more(admin: Secured) -> None:
    topic, other = fresh_name("allowed"), fresh_name("forbidden")
    admin.ok("topic", "create", topic)
    admin.ok("topic", "create", other)
    password = admin.ok("user", "add", "bob", "--generate", "--json").json["password"]
    bob = admin.as_user("bob", password)

    assert bob("topic", "list", "--json").json == []
    assert "topic authorization failed" in bob("produce", topic, "v").err
    admin.ok("acl", "allow", "bob", "--producer", "--topic", topic)
    admin.ok("acl", "allow", "bob", "--consumer", "--topic", topic, "--group", topic)

    assert bob.ok("produce", topic, "v").status == 0
    assert bob.ok("consume", topic, "--group", topic, "--from", "beginning", "--exit-at-end").text == "v\n"
    assert [each["name"] for each in bob.ok("topic", "list", "--json").json] == [topic]
    assert bob("produce", other, "v").status == 1
    assert bob("user", "list").status == 1

    admin.ok("acl", "deny", "bob", "--topic", topic, "--operation", "write")
    assert bob("produce", topic, "v").status == 1


def test_a_restart_keeps_users_acls_and_certificates(tmp_path: Path) -> None:
    with UpProcess(tmp_path, arguments=["--secure"]) as up:
        admin = administrator(up)
        admin.ok("topic", "create", "t")
        password = admin.ok("user", "add", "alice", "--generate", "--json").json["password"]
        admin.ok("acl", "allow", "alice", "--topic", "t", "--operation", "write", "--operation", "describe")
        kept = {name: (up.data / "certs" / name).read_text() for name in ("ca.pem", "broker-1.pem")}
        before = admin.file.read_text()
        up.stop()
        up.start()

        assert admin.file.read_text() == before
        assert {name: (up.data / "certs" / name).read_text() for name in kept} == kept
        assert [each["name"] for each in admin.ok("user", "list", "--json").json] == ["admin", "alice"]
        assert admin.as_user("alice", password).ok("produce", "t", "v").status == 0

        up.stop()
        up.arguments.remove("--secure")
        with pytest.raises(NotReady, match="is a secured cluster: start it with --secure"):
            up.start()


def test_a_lost_file_is_written_anew_with_another_password(tmp_path: Path) -> None:
    with UpProcess(tmp_path, arguments=["--secure"]) as up:
        admin = administrator(up)
        old = admin.file.read_text()
        up.stop()
        admin.file.unlink()
        up.start()

        assert admin.file.read_text() != old
        admin.ok("topic", "list")
        admin.file.write_text(old)
        assert "are user name and password right?" in admin("topic", "list").complaint


def test_three_brokers_are_secured_as_well(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path, 3, arguments=["--secure"]) as up:
        admin = administrator(up)
        admin.ok("topic", "create", "t", "--partitions", "3", "--replicas", "3")
        admin.ok("produce", "t", *map(str, range(30)))
        assert sorted(map(int, admin.ok("consume", "t", "--exit-at-end").text.split())) == list(range(30))
        status = admin.ok("cluster", "status", "--json").json
        assert len(status["brokers"]) == 3
        assert status["under_replicated"] == []
        settings = parse_properties(admin.file.read_text(), "file")
        assert settings["bootstrap.servers"] == up.bootstrap
        assert len(re.findall(r":\d+", up.bootstrap)) == 3


def test_records_are_decoded_by_the_registry_that_the_secured_brokers_name(
    admin: Secured, secure_up: UpProcess, tmp_path: Path
) -> None:
    topic = fresh_name("schemas")
    file = tmp_path / "order.avsc"
    file.write_text('{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}')
    admin.ok("schema", "register", f"{topic}-value", str(file))
    admin.ok("produce", topic, '{"id": 7}')

    shown = admin.ok("consume", topic, "--exit-at-end", "--json").json
    assert shown["value"] == {"id": 7}
    settings = admin.ok("config", "describe", "broker", "1", "--json").json
    assert {each["name"]: each["value"] for each in settings}["http.advertised.url"] == secure_up.http


def test_topics_are_tables_with_the_schemas_of_the_secured_registry(admin: Secured, tmp_path: Path) -> None:
    topic = fresh_name("tables")
    file = tmp_path / "order.avsc"
    file.write_text(
        '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, '
        '{"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}]}'
    )
    admin.ok("topic", "create", topic)
    admin.ok("schema", "register", f"{topic}-value", str(file))
    admin.ok("produce", topic, '{"id": 7, "at": "2026-01-02T03:04:05Z"}')

    settings = parse_properties(admin.file.read_text(), "file")
    order = {"id": 7, "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}
    for bootstrap in (admin.connection, settings):
        found = headrace.arrow.read(topic, bootstrap, schema="registry", columns=["value"]).read_all()
        assert found["value"].to_pylist() == [order]
    assert admin.ok("sql", f'select value.id as id from "{topic}"', "--json").json == {"id": 7}
    wrong = settings | {"sasl.jaas.config": settings["sasl.jaas.config"].replace('password="', 'password="x')}
    with pytest.raises(Refused):
        headrace.arrow.read(topic, wrong)
