"""Every kind of command against a cluster with TLS and SASL, by the file of --command-config."""

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from cli.command import Command, Result
from headrace import JSON, Admin, Consumer, Producer
from headrace.client.errors import Refused
from headrace.client.properties import parse_properties, to_properties
from headrace.client.wire.connection_settings import ConnectionSettings
from support.certificates import Authority
from support.process import clean_environment
from wire.requests import fresh_name
from wire.secured import LOGIN, SecuredCluster, secured_cluster

PASSWORD: Final = "wonderland"
JAAS: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("headrace tests")


@pytest.fixture(scope="module")
def cluster(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    root = tmp_path_factory.mktemp("secured")
    made = authority.certify("broker", ("127.0.0.1",))
    (root / "broker.pem").write_text(made.key + made.certificate)
    settings = {
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,CLIENTS:SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(root / "broker.pem"),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": LOGIN,
    }
    with secured_cluster(root, settings, brokers=1) as running:
        yield running


@pytest.fixture(scope="module")
def files(
    cluster: SecuredCluster, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """The files of Java's clients and of librdkafka's, and one with a wrong password."""
    root = tmp_path_factory.mktemp("clients")
    (root / "ca.pem").write_text(authority.certificate)
    common = {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
    }
    java = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(root / "ca.pem")}
    librdkafka = {"ssl.ca.location": str(root / "ca.pem"), "sasl.username": "alice"}
    contents = {
        "java": common | java | {"sasl.jaas.config": f'{JAAS} username="alice" password="{PASSWORD}";'},
        "librdkafka": common | librdkafka | {"sasl.password": PASSWORD},
        "wrong": common | librdkafka | {"sasl.password": "guessed"},
    }
    for name, settings in contents.items():
        (root / f"{name}.properties").write_text(to_properties(settings))
    return {name: root / f"{name}.properties" for name in contents}


@pytest.fixture(params=["java", "librdkafka"])
def secured(files: dict[str, Path], request: pytest.FixtureRequest) -> "Secured":
    return Secured(files[request.param])


class Secured(Command):
    """Runs `headrace --command-config FILE`; the address is in the file."""

    def __init__(self, file: Path) -> None:
        super().__init__("")
        self.file = file

    def __call__(
        self, *arguments: str, stdin: bytes = b"", environment: dict[str, str] | None = None
    ) -> Result:
        return super().__call__(
            "--command-config", str(self.file), *arguments, stdin=stdin, environment=environment
        )


def test_records_are_written_and_read(secured: Secured) -> None:
    topic = fresh_name("records")
    secured.ok("topic", "create", topic, "--replicas", "1")
    secured.ok("produce", topic, "one", "two")

    assert secured.ok("consume", topic, "--exit-at-end").text.split() == ["one", "two"]
    group = secured.ok("consume", topic, "--group", topic, "--from", "beginning", "--exit-at-end")
    assert group.text.split() == ["one", "two"]
    assert secured.ok("group", "describe", topic, "--json").json[0]["total_lag"] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("topic", "list"),
        ("group", "list"),
        ("txn", "list"),
        ("broker", "list"),
        ("broker", "describe", "1"),
        ("cluster", "status"),
        ("config", "describe", "broker", "1"),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_commands_that_look_connect(files: dict[str, Path], arguments: tuple[str, ...]) -> None:
    result = Secured(files["java"])(*arguments, "--json")
    assert "error" not in result.err, result
    assert "cannot" not in result.text, result


def test_a_profile_connects_with_a_password_of_the_environment(
    files: dict[str, Path], tmp_path: Path
) -> None:
    home = {"XDG_CONFIG_HOME": str(tmp_path), "HEADRACE_BOOTSTRAP": ""}
    with_password = home | {"PROD_PASSWORD": PASSWORD}
    run = Command("")
    reference = "sasl.password=${env:PROD_PASSWORD}"
    added = run(
        "profile", "add", "prod", "-F", str(files["librdkafka"]), "-X", reference, "--json", environment=home
    )
    assert added.json["settings"]["sasl.password"] == "${env:PROD_PASSWORD}"
    file = Path(added.json["file"])
    assert PASSWORD not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600

    topic = fresh_name("profile")
    create = ("topic", "create", topic, "--replicas", "1", "--profile", "prod")
    assert run(*create, environment=with_password).status == 0
    assert "PROD_PASSWORD" in run("topic", "list", "-P", "prod", environment=home).complaint
    assert run("profile", "use", "prod", environment=home).status == 0
    assert run("produce", topic, "one", environment=with_password).status == 0
    assert (
        run("consume", topic, "-e", environment=with_password | {"HEADRACE_PROFILE": "prod"}).text == "one\n"
    )
    (listed,) = run("profile", "list", "--json", environment=home).json
    assert (listed["name"], listed["current"], listed["security"]) == ("prod", True, "SASL_SSL")
    assert "exists already" in run("profile", "add", "prod", "-b", "x:1", environment=home).complaint

    refused = run("profile", "remove", "prod", environment=home)
    assert (refused.status, refused.complaint.split(":")[0]) == (2, "Confirmation needs a terminal")
    assert run("profile", "remove", "prod", "--yes", environment=home).status == 0
    assert "there is no profile prod" in run("topic", "list", "--profile", "prod", environment=home).complaint


def test_the_environment_may_name_the_file(files: dict[str, Path]) -> None:
    variables = {"HEADRACE_COMMAND_CONFIG": str(files["java"]), "HEADRACE_BOOTSTRAP": ""}
    result = Command("")("cluster", "status", "--json", environment=variables)
    assert result.status == 0, result


def test_an_option_after_the_command_counts_too(files: dict[str, Path]) -> None:
    assert Command("nowhere:1")("topic", "list", "--command-config", str(files["java"])).status == 0


@pytest.mark.parametrize(
    "command", [("topic", "list"), ("produce", "t", "v"), ("consume", "t", "--exit-at-end")]
)
def test_a_wrong_password_is_reported_at_once_and_not_shown(
    files: dict[str, Path], command: tuple[str, ...]
) -> None:
    result = Secured(files["wrong"])(*command)
    assert re.search(r"refuses alice: .*are user name and password right\?", result.complaint), result
    assert "guessed" not in result.err


def test_without_the_file_a_secured_broker_says_what_is_missing(cluster: SecuredCluster) -> None:
    result = Command(cluster.bootstrap)("topic", "list")
    assert "is security.protocol=PLAINTEXT right?" in result.complaint


def test_the_bench_connects_and_keeps_secrets_out_of_its_command_lines(secured: Secured) -> None:
    found = secured.ok("bench", "--seconds", "0.5", "--partitions", "1", "--replicas", "1", "--json").json
    assert {each["phase"] for each in found["throughput"]} == {"produce", "consume"}


def test_a_gateway_connects_by_the_same_file(files: dict[str, Path]) -> None:
    topic = fresh_name("gateway")
    with Admin(ConnectionSettings.load(files["java"])) as admin:
        admin.create_topic(topic, partitions=1, replicas=1)
    with subprocess.Popen(
        [sys.executable, "-m", "headrace", "--command-config", str(files["java"]), "gateway", "--port=0"],
        stdout=subprocess.PIPE,
        text=True,
        env=clean_environment(),
    ) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip().removeprefix("ready http=")
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"{url}/topics", timeout=60)
            login = {"Authorization": "Basic " + b64encode(f"alice:{PASSWORD}".encode()).decode()}
            listing = urllib.request.Request(f"{url}/topics", headers=login)
            with urllib.request.urlopen(listing, timeout=60) as answer:
                assert topic in json.load(answer)
            body = json.dumps({"records": [{"value": {"n": 1}}]}).encode()
            headers = login | {"Content-Type": "application/vnd.kafka.json.v2+json"}
            request = urllib.request.Request(f"{url}/topics/{topic}", body, headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert json.load(answer)["offsets"][0]["offset"] == 0
        finally:
            process.terminate()


@pytest.mark.parametrize("family", ["java", "librdkafka"])
def test_the_sdk_connects_by_the_same_file(files: dict[str, Path], family: str) -> None:
    connection = ConnectionSettings.load(files[family])
    topic = fresh_name("sdk")
    with Admin(connection) as admin:
        admin.create_topic(topic, partitions=1, replicas=1)
    with Producer(connection, value=JSON) as producer:
        producer.send(topic, {"n": 1})
    with Consumer(connection, [topic], value=JSON, group=topic) as consumer:
        assert [each.value for each in consumer.read(stop_at_end=True)] == [{"n": 1}]


def test_the_sdk_takes_java_settings_as_a_dict(files: dict[str, Path]) -> None:
    settings = parse_properties(files["java"].read_text(), "java")
    topic = fresh_name("dict")
    with Admin(settings) as admin:
        admin.create_topic(topic, partitions=1, replicas=1)
    with Producer(settings, linger_ms=0) as producer:
        producer.send(topic, "v")


def test_a_client_of_the_sdk_is_refused_at_once(files: dict[str, Path]) -> None:
    connection = ConnectionSettings.load(files["wrong"])
    for make in (Admin, Producer, Consumer):
        with pytest.raises(Refused, match="are user name and password right") as raised:
            make(connection)
        assert "guessed" not in str(raised.value)
