"""References in settings: what they refer to, and that no message shows it."""

from pathlib import Path
from typing import Any, Final

import pytest

from headrace.client.errors import WrongSetting
from headrace.client.wire.config_providers import resolve
from headrace.client.wire.librdkafka import with_librdkafka_security
from headrace.client.wire.security import Security

SECRET: Final = "wonder=land"
HERE: Final = __name__


def vault(path: str, key: str, *, address: str = "") -> str:
    return f"{address}/{path}#{key}"


def broken(path: str, key: str) -> str:
    raise RuntimeError(f"{SECRET} of {path} {key}")


def number(_path: str, _key: str) -> int:
    return 7


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKA_PASSWORD", SECRET)
    (tmp_path / "kafka.properties").write_text(f"# a comment\nuser=alice\npassword={SECRET}\n")
    (tmp_path / "password").write_text(f"{SECRET}\n")
    return tmp_path


def password(reference: str, **more: str) -> Any:
    return resolve({"sasl.password": reference, **more})["sasl.password"]


def test_each_provider_finds_the_secret(kept: Path) -> None:
    assert password("${env:KAFKA_PASSWORD}") == SECRET
    assert password(f"${{file:{kept}/kafka.properties:password}}") == SECRET
    assert password(f"${{directory:{kept}:password}}") == SECRET


def test_references_are_replaced_inside_of_a_value_and_only_once(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NESTED", "${env:KAFKA_PASSWORD}")
    jaas = f'M required username="${{file:{kept}/kafka.properties:user}}" password="${{env:NESTED}}";'

    assert password(jaas) == 'M required username="alice" password="${env:KAFKA_PASSWORD}";'


def test_values_without_references_stay_as_they_are() -> None:
    given = {"linger.ms": 5, "sasl.password": "${}$ {env:A} $env", "oauth_cb": print}

    assert resolve(given) == given


def test_a_provider_is_a_function_of_python() -> None:
    configured = {
        "config.providers": "vault, env",
        "config.providers.vault.class": f"{HERE}:vault",
        "config.providers.vault.param.address": "https://v",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    }
    found = resolve({"sasl.password": "${vault:kv/spark:pw}", **configured})

    assert found == {"sasl.password": "https://v/kv/spark#pw"}  # clients do not know config.providers


def test_a_provider_can_be_limited(kept: Path) -> None:
    (kept / "inside").mkdir()
    file = {
        "config.providers": "file,env",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "config.providers.file.param.allowed.paths": str(kept / "inside"),
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern": "SPARK_.*",
    }
    for reference, why in {
        f"${{file:{kept}/inside/../kafka.properties:password}}": r"is not in its allowed\.paths",
        "${env:KAFKA_PASSWORD}": r"is not matched by its allowlist\.pattern",
    }.items():
        with pytest.raises(WrongSetting, match=why):
            password(reference, **file)


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("${env:ABSENT_HERE}", "refers to ${env:ABSENT_HERE}, which is not set here: executors need"),
        ("${file:ROOT/absent:a}", "which cannot be read: no such file or directory"),
        ("${file:ROOT/kafka.properties:absent}", "which is not in that file"),
        ("${file:ROOT/password}", "names no key: expected ${file:PATH:KEY}, or ${directory:PATH:FILE}"),
        ("${file:ROOT/broken:a}", "line 1: expected NAME=VALUE"),
        ("${directory:ROOT:../password}", "does not name a file: expected ${directory:PATH:FILE}"),
        ("${directory:ROOT:bytes}", "which is not text in UTF-8"),
        ("${vault:a:b}", "there is no provider 'vault'; expected directory, env, file, or name its class"),
    ],
)
def test_a_reference_to_nothing_is_named(kept: Path, reference: str, why: str) -> None:
    (kept / "bytes").write_bytes(b"\xff\xfe")
    (kept / "broken").write_text(f"{SECRET.replace('=', '')}\n")
    with pytest.raises(WrongSetting) as wrong:
        password(reference.replace("ROOT", str(kept)))

    assert why in str(wrong.value)
    assert wrong.value.setting == "sasl.password"
    assert "wonder" not in str(wrong.value)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("broken", "and the provider fails with RuntimeError"),
        ("number", "which is int, expected a text"),
        ("absent", "which cannot be imported"),
    ],
)
def test_a_provider_that_fails_is_named_without_its_message(function: str, why: str) -> None:
    configured = {"config.providers": "x", "config.providers.x.class": f"{HERE}:{function}"}
    with pytest.raises(WrongSetting, match=why) as wrong:
        password("${x:a:b}", **configured)

    assert SECRET not in str(wrong.value)
    assert wrong.value.__cause__ is None or SECRET not in str(wrong.value.__cause__)


def test_a_class_of_java_is_refused() -> None:
    with pytest.raises(WrongSetting, match=r"config\.providers\.x\.class is 'com\.example\.Vault': expected"):
        resolve({"a": "${x:b}", "config.providers": "x", "config.providers.x.class": "com.example.Vault"})


def test_security_and_librdkafka_get_the_secret_and_do_not_show_it(kept: Path) -> None:
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": f"${{file:{kept}/kafka.properties:user}}",
        "sasl.password": "${env:KAFKA_PASSWORD}",
    }
    made = Security.of(settings)

    assert made.sasl is not None
    assert (made.sasl.username, made.sasl.password) == ("alice", SECRET)
    assert SECRET not in repr(made)
    assert with_librdkafka_security(settings)["sasl.password"] == SECRET


@pytest.mark.parametrize(
    "name", ["security.protocol", "sasl.mechanism", "ssl.endpoint.identification.algorithm"]
)
def test_a_value_of_a_reference_that_is_not_valid_is_not_shown(kept: Path, name: str) -> None:
    assert kept
    settings = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", name: "${env:KAFKA_PASSWORD}"}
    with pytest.raises(WrongSetting) as wrong:
        Security.of(settings)

    assert str(wrong.value) == f"{name} refers to ${{env:KAFKA_PASSWORD}}, whose value is not valid"
