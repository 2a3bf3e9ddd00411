"""`headrace up --secure` and Apache Kafka's own tools, with the file that it writes for them."""

import subprocess
from collections.abc import Iterator
from typing import Final

import pytest

from compat.kafka_tools.java import KafkaJava
from headrace import Admin, ConnectionSettings
from headrace.security.acls import AclFilter
from support.process import UpProcess

TOPICS: Final = "org.apache.kafka.tools.TopicCommand"
ACLS: Final = "org.apache.kafka.tools.AclCommand"
PRODUCER: Final = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TIMEOUT_S: Final = 120


class Tools:
    """Runs Kafka's tools as the administrator."""

    def __init__(self, up: UpProcess, java: KafkaJava) -> None:
        self.up, self._java = up, java
        self.file = up.data / "client.properties"

    def __call__(self, main_class: str, *arguments: str, stdin: str = "") -> str:
        at = ("--bootstrap-server", self.up.bootstrap, "--command-config", str(self.file))
        done = subprocess.run(
            self._java.command(main_class, *at, *arguments),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, done
        return done.stdout


@pytest.fixture(scope="module")
def tools(kafka_java: KafkaJava, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    with UpProcess(tmp_path_factory.mktemp("secure"), arguments=["--secure"]) as up:
        yield Tools(up, kafka_java)


def test_kafka_tools_create_write_and_read_a_topic(tools: Tools) -> None:
    tools(TOPICS, "--create", "--topic", "java", "--partitions", "2", "--replication-factor", "1")
    assert "java" in tools(TOPICS, "--list").split()
    tools(PRODUCER, "--topic", "java", stdin="one\ntwo\n")
    read = tools(
        CONSUMER, "--topic", "java", "--from-beginning", "--max-messages", "2", "--timeout-ms", "60000"
    )
    assert sorted(read.split()) == ["one", "two"]


def test_kafka_acls_and_ours_see_the_same(tools: Tools) -> None:
    tools(ACLS, "--add", "--allow-principal", "User:carol", "--producer", "--topic", "orders")
    with Admin(ConnectionSettings.load(tools.file)) as admin:
        found = admin.list_acls(AclFilter(principal="User:carol"))
        assert [str(each) for each in found] == [
            "ALLOW User:carol WRITE from * on LITERAL TOPIC 'orders'",
            "ALLOW User:carol CREATE from * on LITERAL TOPIC 'orders'",
            "ALLOW User:carol DESCRIBE from * on LITERAL TOPIC 'orders'",
        ]
        assert "User:carol" in tools(ACLS, "--list", "--topic", "orders")
        admin.delete_acls([AclFilter(principal="User:carol")])
    assert "User:carol" not in tools(ACLS, "--list")
