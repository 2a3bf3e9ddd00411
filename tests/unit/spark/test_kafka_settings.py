"""Settings of Kafka's clients: each is obeyed, has no effect and is named in a warning, or is refused."""

import logging

import pytest

from headrace.spark import kafka_settings
from headrace.spark.errors import InvalidOption
from headrace.spark.kafka_settings import OF_SINKS, OF_SOURCES, REFUSED, check_names, warn_once


@pytest.fixture(autouse=True)
def _nothing_is_warned_of_yet() -> None:
    warn_once.cache_clear()


def test_no_name_is_in_two_tables() -> None:
    no_effect = kafka_settings._NO_EFFECT.keys()

    assert not (OF_SOURCES | OF_SINKS) & no_effect
    assert not (OF_SOURCES | OF_SINKS) & REFUSED.keys()
    assert not no_effect & REFUSED.keys()


def test_a_setting_without_effect_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        check_names(["session.timeout.ms", "bootstrap.servers", "group.id"], OF_SOURCES)
        check_names(["session.timeout.ms"], OF_SOURCES)

    why = "a query reads partitions without being a member of its group"
    assert caplog.messages == [f"option kafka.session.timeout.ms has no effect: {why}"]


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
    ("name", "hint"),
    [
        ("max.partition.fetch.byte", "; did you mean kafka.max.partition.fetch.bytes?"),
        ("security.protocl", "; did you mean kafka.security.protocol?"),
        ("zzz", ""),
    ],
)
def test_an_unknown_setting_is_refused(name: str, hint: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        check_names([name], OF_SOURCES)

    assert str(refused.value) == f"option 'kafka.{name}': there is no such setting of Kafka's clients{hint}"
