"""TLS settings that change while a broker runs."""

from pathlib import Path

import pytest

from headrace.broker.security.tls import BrokerTls
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.setting import InvalidSetting
from support.certificates import Authority, Identity

AUTHORITY, STRANGER = Authority("authority"), Authority("stranger")
BROKER = AUTHORITY.certify("broker", ["localhost"])


def store(path: Path, identity: Identity) -> str:
    path.write_text(identity.key + identity.certificate)
    return str(path)


def broker_config(tmp_path: Path) -> BrokerConfig:
    """Brokers connect to INSIDE with certificates, and clients to CLIENTS without."""
    trusted = tmp_path / "trusted.pem"
    trusted.write_text(AUTHORITY.certificate)
    return BrokerConfig.of(
        {
            "listeners": "INSIDE://:9093,CLIENTS://:9092",
            "listener.security.protocol.map": "INSIDE:SSL,CLIENTS:SSL",
            "inter.broker.listener.name": "INSIDE",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": store(tmp_path / "broker.pem", BROKER),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(trusted),
            "listener.name.inside.ssl.client.auth": "required",
        }
    )


def with_keystore(config: BrokerConfig, listener: str, path: str) -> BrokerConfig:
    return config.with_dynamic({}, {f"listener.name.{listener}.ssl.keystore.location": path})


def test_a_checked_keystore_is_used_without_reading_it_again(tmp_path: Path) -> None:
    config = broker_config(tmp_path)
    tls = BrokerTls(config)
    new = tmp_path / "new.pem"
    changed = with_keystore(
        config, "clients", store(new, renewed := AUTHORITY.certify("broker", ["localhost"]))
    )

    tls.check(changed)
    new.unlink()
    tls.use_config(changed)

    context = tls.of_listener(config.listener("CLIENTS"))
    assert context is not None
    assert context.current.chain == renewed.certificate


@pytest.mark.parametrize("listener", ["inside", "clients"])
@pytest.mark.parametrize(
    ("identity", "says"),
    [
        (AUTHORITY.certify("other", ["localhost"]), "ssl.allow.dn.changes"),
        (AUTHORITY.certify("broker", ["elsewhere"]), "ssl.allow.san.changes"),
    ],
)
def test_another_name_is_refused_unless_it_is_permitted(
    tmp_path: Path, listener: str, identity: Identity, says: str
) -> None:
    config = broker_config(tmp_path)
    path = store(tmp_path / "new.pem", identity)
    with pytest.raises(InvalidSetting, match=f"listener {listener.upper()}: .*{says}"):
        BrokerTls(config).check(with_keystore(config, listener, path))

    permitted = BrokerConfig.of({**config.given, says: "true"})
    BrokerTls(permitted).check(with_keystore(permitted, listener, path))


def test_brokers_have_to_trust_a_new_certificate_and_clients_are_not_known(tmp_path: Path) -> None:
    config = broker_config(tmp_path)
    tls = BrokerTls(config)
    path = store(tmp_path / "new.pem", STRANGER.certify("broker", ["localhost"]))

    tls.check(with_keystore(config, "clients", path))
    with pytest.raises(InvalidSetting, match=r"listener INSIDE: .*brokers cannot connect"):
        tls.check(with_keystore(config, "inside", path))


def test_brokers_have_to_be_trusted_by_a_new_truststore(tmp_path: Path) -> None:
    config = broker_config(tmp_path)
    other = tmp_path / "other.pem"
    other.write_text(STRANGER.certificate)
    changed = config.with_dynamic({}, {"listener.name.inside.ssl.truststore.location": str(other)})
    with pytest.raises(InvalidSetting, match="brokers cannot connect"):
        BrokerTls(config).check(changed)


def test_a_keystore_that_was_damaged_can_be_replaced(tmp_path: Path) -> None:
    config = broker_config(tmp_path)
    tls = BrokerTls(config)
    (tmp_path / "broker.pem").write_text("half a certificate")

    new = AUTHORITY.certify("broker", ["localhost"])
    tls.check(
        config.with_dynamic(
            {},
            {
                "listener.name.inside.ssl.keystore.location": store(tmp_path / "new.pem", new),
                "listener.name.clients.ssl.keystore.location": store(tmp_path / "new.pem", new),
            },
        )
    )


def test_unusable_settings_change_nothing(tmp_path: Path) -> None:
    config = broker_config(tmp_path)
    tls = BrokerTls(config)
    before = {name: tls.of_listener(config.listener(name)) for name in ("INSIDE", "CLIENTS")}
    broken = config.with_dynamic(
        {},
        {
            "listener.name.inside.ssl.client.auth": "none",
            "listener.name.clients.ssl.keystore.location": str(tmp_path / "missing.pem"),
        },
    )
    for use in (tls.check, tls.use_config):
        with pytest.raises(InvalidSetting, match="where there is no file"):
            use(broken)

    assert {name: tls.of_listener(config.listener(name)) for name in before} == before
    assert all(each is not None and each.current.chain == BROKER.certificate for each in before.values())
