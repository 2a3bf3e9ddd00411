"""How a broker's settings become what it shows to ZooKeeper."""

import ssl
from pathlib import Path

import pytest

from headrace.broker.security.zookeeper_security import zookeeper_security
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.setting import InvalidSetting
from headrace.coordination.client_security import OPEN, ClientSecurity
from headrace.coordination.credentials import Credential, ensure_file
from headrace.coordination.errors import CoordinationError

LOGIN = 'org.apache.zookeeper.server.auth.DigestLoginModule required username="ann" password="hidden";'


def security(**settings: str) -> ClientSecurity:
    return zookeeper_security(
        BrokerConfig.of({f"zookeeper.{name.replace('_', '.')}": value for name, value in settings.items()})
    )


def test_by_default_a_broker_shows_nothing() -> None:
    assert security() == OPEN


def test_the_credential_is_in_a_setting_or_in_a_file(tmp_path: Path) -> None:
    file = ensure_file(tmp_path / "jaas.conf")

    assert security(sasl_jaas_config=LOGIN).credential == Credential("ann", "hidden")
    assert security(sasl_jaas_file=str(file)).credential == Credential.of_file(file)
    assert security(sasl_jaas_config=LOGIN, auth_scheme="digest", set_acl="true").scheme == "digest"


def test_no_password_is_shown(tmp_path: Path) -> None:
    keystore = {"ssl.keystore.location": "k", "ssl.keystore.password": "hidden"}
    settings = {f"zookeeper.{name}": value for name, value in keystore.items()}
    config = BrokerConfig.of(
        {**settings, "zookeeper.ssl.client.enable": "true", "zookeeper.sasl.jaas.config": LOGIN}
    )

    assert "hidden" not in repr(zookeeper_security(config))
    with pytest.raises(InvalidSetting) as invalid:
        security(sasl_jaas_config="module required password=hidden;")
    assert "hidden" not in str(invalid.value)
    assert tmp_path.exists()


def test_tls_has_kafka_s_names_and_defaults() -> None:
    tls = security(
        ssl_client_enable="true",
        clientCnxnSocket="org.apache.zookeeper.ClientCnxnSocketNetty",
        ssl_truststore_location="/etc/trust.p12",
        ssl_truststore_password="secret",
        ssl_truststore_type="PKCS12",
        ssl_protocol="TLSv1.2",
    ).tls

    assert tls is not None
    assert tls.checks_host
    assert tls.client_versions == (ssl.TLSVersion.TLSv1_2,)
    assert tls.truststore is not None
    assert tls.paths == ("/etc/trust.p12",)


def test_the_host_need_not_be_in_the_certificate() -> None:
    found = security(ssl_client_enable="true", ssl_endpoint_identification_algorithm="").tls
    assert found is not None
    assert not found.checks_host


def test_a_file_that_is_missing_is_named_with_its_setting() -> None:
    found = security(ssl_client_enable="true", ssl_truststore_location="/missing.pem")
    with pytest.raises(CoordinationError, match=r"zookeeper\.ssl\.truststore\.location.*/missing\.pem"):
        found.context()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"set_acl": "true"}, "zookeeper.set.acl=true: znodes can only be protected for a user"),
        ({"set_acl": "true", "ssl_client_enable": "true"}, "zookeeper.set.acl=true"),
        ({"sasl_jaas_config": LOGIN, "sasl_jaas_file": "x"}, "cannot be set with zookeeper.sasl.jaas.config"),
        ({"sasl_jaas_file": "/missing"}, "cannot read the JAAS file /missing"),
        ({"sasl_jaas_config": "nothing"}, "zookeeper.sasl.jaas.config has no username and password"),
        ({"ssl_client_enable": "true", "ssl_keystore_type": "BKS"}, "zookeeper.ssl.keystore.type"),
        ({"auth_scheme": "kerberos"}, "zookeeper.auth.scheme"),
    ],
)
def test_settings_that_contradict_each_other(settings: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        security(**settings)
