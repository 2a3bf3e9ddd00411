"""Settings of Kafka's clients: each is obeyed, has no effect and is named in a warning, or is refused."""

import logging

import pytest

from headrace.spark.errors import InvalidOption
from headrace.spark.kafka_settings import OF_SINKS, OF_SOURCES, REFUSED, check_names, warn_once


@pytest.fixture(autouse=True)
def _nothing_is_warned_of_yet() -> None:
    warn_once.cache_clear()


def test_no_name_is_in_two_tables() -> None:
    assert not (OF_SOURCES | OF_SINKS) & REFUSED.keys()


def test_a_setting_without_effect_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        check_names(["session.timeout.ms", "bootstrap.servers", "group.id"], OF_SOURCES)
        check_names(["session.timeout.ms"], OF_SOURCES)

    assert caplog.messages == ["option kafka.session.timeout.ms has no effect"]


@pytest.mark.parametrize("name", ["fetch.min.bytes", "sasl.oauthbearer.jwks.endpoint.url", "zzz"])
def test_a_setting_that_only_resembles_another_is_not_refused(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        check_names([name], OF_SOURCES)

    assert caplog.messages == [f"option kafka.{name} has no effect"]


def test_a_setting_for_the_other_direction_has_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        check_names(["acks"], OF_SOURCES)
        check_names(["group.id"], OF_SINKS)

    assert caplog.messages == [
        "option kafka.acks has no effect: it is for writing",
        "option kafka.group.id has no effect: it is for reading",
    ]


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refused_setting_has_its_reason(name: str) -> None:
    with pytest.raises(InvalidOption, match=rf"option 'kafka\.{name}': cannot be set: \w+"):
        check_names([name], OF_SOURCES)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("max.partition.fetch.byte", "kafka.max.partition.fetch.bytes"),
        ("security.protocl", "kafka.security.protocol"),
        ("ssl.truststore.locaton", "kafka.ssl.truststore.location"),
    ],
)
def test_a_misspelt_setting_is_refused(name: str, meant: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        check_names([name], OF_SOURCES)

    why = f"there is no such setting of Kafka's clients; did you mean {meant}?"
    assert str(refused.value) == f"option 'kafka.{name}': {why}"
