"""How to connect to a cluster, from the files of both families of clients."""

from pathlib import Path

import pytest

from headrace.client.errors import BadSetting
from headrace.client.wire.connection_settings import ConnectionSettings, settings_for

JAVA = """\
bootstrap.servers=one:9093,two:9093
security.protocol=SASL_PLAINTEXT
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="alice" password="wonder\\\\\"land";
key.deserializer=org.apache.kafka.common.serialization.StringDeserializer
"""
LIBRDKAFKA = """\
metadata.broker.list=one:9093,two:9093
security.protocol=sasl_plaintext
sasl.mechanisms=SCRAM-SHA-512
sasl.username=alice
sasl.password=wonder"land
"""


def loaded(directory: Path, text: str) -> ConnectionSettings:
    path = directory / "client.properties"
    path.write_text(text)
    return ConnectionSettings.load(path)


@pytest.mark.parametrize("text", [JAVA, LIBRDKAFKA])
def test_both_families_of_clients_say_the_same(tmp_path: Path, text: str) -> None:
    assert loaded(tmp_path, text).librdkafka() == {
        "bootstrap.servers": "one:9093,two:9093",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": 'wonder"land',
    }


def test_no_secret_is_shown(tmp_path: Path) -> None:
    assert "wonder" not in repr(loaded(tmp_path, JAVA))
    assert "wonder" not in repr(loaded(tmp_path, LIBRDKAFKA))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("security.protocol=TLS", "security.protocol is 'TLS': choose one of PLAINTEXT, SSL"),
        ("security.protocol=SASL_SSL", "sasl.mechanism is missing: choose one of PLAIN"),
        ("security.protocol", ", line 1: expected NAME=VALUE"),
    ],
)
def test_an_error_names_the_file(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadSetting) as raised:
        loaded(tmp_path, text)
    assert str(raised.value).startswith(str(tmp_path / "client.properties"))
    assert says in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"nowhere\.properties cannot be read: no such file"):
        ConnectionSettings.load(tmp_path / "nowhere.properties")


def test_an_unusable_store_is_named_by_its_setting(tmp_path: Path) -> None:
    connection = loaded(tmp_path, f"security.protocol=SSL\nssl.truststore.location={tmp_path}/no.jks")
    with pytest.raises(BadSetting, match=r"ssl\.truststore\.location is .*/no\.jks, where there is no file"):
        connection.librdkafka()


def test_bootstrap_servers_alone_mean_plaintext() -> None:
    assert settings_for("one:9092") == ConnectionSettings("one:9092")
    assert ConnectionSettings.of({}, "one:9092") == ConnectionSettings("one:9092")
