"""kafka-delegation-tokens.sh, and a Java client that authenticates with a token."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat.kafka_tools.java import KafkaJava
from wire.guarded import guarded_cluster, password
from wire.secured import SecuredCluster

Shell = Callable[..., str]
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with guarded_cluster(tmp_path_factory.mktemp("tokens"), brokers=1) as running:
        yield running


@pytest.fixture
def shell(cluster: SecuredCluster, kafka_java: KafkaJava, tmp_path: Path) -> Shell:
    def run(tool: str, *arguments: str, mechanism: str, login: str) -> str:
        config = tmp_path / "client.properties"
        settings = f"sasl.mechanism={mechanism}\nsasl.jaas.config={login}\n"
        config.write_text(f"security.protocol=SASL_PLAINTEXT\n{settings}")
        common = ["--bootstrap-server", cluster.bootstrap, "--command-config", str(config)]
        command = kafka_java.command(f"org.apache.kafka.tools.{tool}", *common, *arguments)
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    return run


def test_a_token_is_created_used_described_renewed_and_expired(shell: Shell) -> None:
    login = f'{PLAIN} username="admin" password="{password("admin")}";'

    def tokens(*arguments: str) -> str:
        return shell("DelegationTokenCommand", *arguments, mechanism="PLAIN", login=login)

    created = tokens("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:alice")
    found = re.search(r"^(\S{22})\s+(\S{88})\s+User:admin\s+User:admin\s", created, re.MULTILINE)
    assert found is not None, created
    token_id, hmac = found.groups()

    by_token = f'{SCRAM} username="{token_id}" password="{hmac}" tokenauth="true";'
    shell("TopicCommand", "--create", "--topic", "made", mechanism="SCRAM-SHA-256", login=by_token)
    listed = shell("TopicCommand", "--list", mechanism="SCRAM-SHA-512", login=by_token)
    assert "made" in listed.split()

    assert token_id in tokens("--describe", "--owner-principal", "User:admin")
    assert "Completed renew operation" in tokens("--renew", "--renew-time-period", "-1", "--hmac", hmac)
    assert "Completed expire operation" in tokens("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert token_id not in tokens("--describe", "--owner-principal", "User:admin")
