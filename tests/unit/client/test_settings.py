"""Settings as people write them, and what is said about bad ones."""

import math
from datetime import timedelta
from fractions import Fraction
from typing import Any

import confluent_kafka
import pytest

from headrace.client.errors import BadSetting
from headrace.client.settings import bootstrap_of, build, check_seconds, delivery_timeout_ms, gather, said
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.client.wire.sasl import Sasl
from headrace.client.wire.security import Security


def gathered(bootstrap: Any = "x:1", **more: Any) -> dict[str, Any]:
    return gather(bootstrap, **({"defaults": {}, "settings": None, "named": {}} | more))


def test_three_spellings_say_the_same() -> None:
    expected = {"bootstrap.servers": "x:1", "linger.ms": 5}
    assert gathered(named={"linger_ms": 5}) == expected
    assert gathered(settings={"linger.ms": 5}) == expected
    assert gathered({"bootstrap.servers": "x:1", "linger.ms": 5}) == expected


def test_a_keyword_wins_over_settings_and_those_over_the_dict_and_all_over_defaults() -> None:
    given = gathered(
        {"bootstrap.servers": "x:1", "a": 1, "b": 1, "c": 1},
        settings={"b": 2, "c": 2},
        named={"c": 3, "d": None},
        defaults={"a": 0, "d": 0},
    )
    assert given == {"bootstrap.servers": "x:1", "a": 1, "b": 2, "c": 3, "d": 0}


def test_a_default_gives_way_to_the_other_name_of_the_same() -> None:
    assert "acks" not in gathered(settings={"request.required.acks": 1}, defaults={"acks": "all"})


def test_callbacks_keep_their_underscore() -> None:
    assert "error_cb" in gathered(named={"error_cb": print})


def test_somebody_must_say_where_the_brokers_are() -> None:
    with pytest.raises(BadSetting, match=r"bootstrap\.servers is missing"):
        gathered({"acks": 1})
    assert bootstrap_of({"metadata.broker.list": "y:2"}) == "y:2"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"no.such.thing": 1}, "there is no setting no.such.thing"),
        ({"compression.type": "zip"}, "zip"),
        ({"acks": 1, "enable.idempotence": True}, "acks"),
        ({"error_cb": 5}, "error_cb"),
        ({"value.serializer": str}, "give value=FORMAT"),
    ],
)
def test_a_bad_setting_is_named(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(BadSetting, match=expected):
        build(confluent_kafka.Producer, {"bootstrap.servers": "127.0.0.1:1", "log_level": 0, **settings})


@pytest.mark.parametrize("bootstrap", [["x:1", "y:2"], ("x:1", "y:2"), {"bootstrap.servers": ["x:1", "y:2"]}])
def test_addresses_may_be_a_list(bootstrap: Any) -> None:
    assert gathered(bootstrap)["bootstrap.servers"] == "x:1,y:2"
    assert gathered(None, named={"bootstrap_servers": ["x:1", "y:2"]})["bootstrap.servers"] == "x:1,y:2"


@pytest.mark.parametrize("bootstrap", [None, "", [], {}, {"bootstrap.servers": None}])
def test_no_address_is_told_as_such(bootstrap: Any) -> None:
    with pytest.raises(BadSetting, match=r"bootstrap\.servers is missing"):
        gathered(bootstrap)


@pytest.mark.parametrize("bootstrap", [9092, b"x:1", [9092], {"bootstrap.servers": 9092}])
def test_what_is_no_address_is_shown(bootstrap: Any) -> None:
    with pytest.raises(BadSetting, match="or a list of such, not"):
        gathered(bootstrap)


def test_an_argument_that_was_not_given_leaves_the_setting_alone() -> None:
    assert said(group_id=None, linger_ms=0) == {"linger_ms": 0}


@pytest.mark.parametrize("acks", [2, -2, True, "most"])
def test_acks_are_one_of_three(acks: object) -> None:
    for name in ("acks", "request.required.acks"):
        with pytest.raises(BadSetting, match="acks is 'all', 1 or 0"):
            gathered(settings={name: acks})
    assert gathered(settings={"acks": -1})["acks"] == -1


@pytest.mark.parametrize("named", [{"on_delivery": print}, {"dr_cb": print}])
def test_a_callback_for_each_record_is_not_a_setting(named: dict[str, Any]) -> None:
    for given in ({"named": named}, {"settings": named}):
        with pytest.raises(BadSetting, match="on_failure=FUNCTION"):
            gathered(**given)


def test_a_callback_about_commits_is() -> None:
    assert gathered(settings={"on_commit": print})["on_commit"] is print


@pytest.mark.parametrize(
    ("settings", "timeout_ms"),
    [
        ({"delivery.timeout.ms": 5}, 5),
        ({"message.timeout.ms": "7"}, 7),
        ({}, None),
        ({"delivery.timeout.ms": "x"}, None),
    ],
)
def test_how_long_a_record_is_tried_has_two_names(settings: dict[str, Any], timeout_ms: int | None) -> None:
    assert delivery_timeout_ms(settings) == timeout_ms


def test_a_transactional_id_is_a_name_and_needs_all_acknowledgements() -> None:
    for given in ({"named": {"transactional_id": "x"}}, {"settings": {"transactional.id": "x"}}):
        assert gathered(**given) == {"bootstrap.servers": "x:1", "transactional.id": "x"}
    for name in ("", 7):
        with pytest.raises(BadSetting, match="is a str, such as"):
            gathered(named={"transactional_id": name})
    for acks in ("acks", "request.required.acks"):
        with pytest.raises(BadSetting, match="needs acks='all', not 0"):
            gathered(settings={"transactional.id": "x", acks: 0})
    assert gathered(named={"transactional_id": None}) == {"bootstrap.servers": "x:1"}


@pytest.mark.parametrize("seconds", ["1", b"1", [1], math.nan, timedelta(seconds=1), 1j])
def test_what_is_no_number_of_seconds_is_shown(seconds: object) -> None:
    with pytest.raises(BadSetting, match=r"^idle_s=.*: it is a number of seconds"):
        check_seconds(limit_s=None, idle_s=seconds)


def test_seconds_are_any_number() -> None:
    check_seconds(a=None, b=0, c=1.5, d=-1, e=Fraction(1, 3), f=math.inf)


@pytest.fixture
def of_a_user(monkeypatch: pytest.MonkeyPatch) -> ConnectionSettings:
    """Connections of a user of the gateway, whose password looks like a reference."""
    monkeypatch.setenv("SECRET", "of this process")
    sasl = Sasl(mechanism="PLAIN", username="mallory", password="${env:SECRET}")
    return ConnectionSettings("one:9092", Security(protocol="SASL_PLAINTEXT", sasl=sasl))


@pytest.mark.parametrize("named", [{}, {"client_id": "${env:SECRET}"}, {"ssl_enabled_protocols": "TLSv1.3"}])
def test_credentials_of_others_are_not_resolved(of_a_user: ConnectionSettings, named: dict[str, str]) -> None:
    found = gather(of_a_user, defaults={}, settings=None, named=named)
    assert found["sasl.password"] == "${env:SECRET}"


def test_an_override_of_such_settings_is_resolved(of_a_user: ConnectionSettings) -> None:
    found = gather(of_a_user, defaults={}, settings={"sasl.password": "${env:SECRET}"}, named={})
    assert found["sasl.password"] == "of this process"
