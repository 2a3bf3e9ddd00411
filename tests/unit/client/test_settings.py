"""Settings as people write them, and what is said about bad ones."""

from typing import Any

import confluent_kafka
import pytest

from headrace.client.errors import BadSetting
from headrace.client.settings import bootstrap_of, build, gather


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
    with pytest.raises(BadSetting, match="where the brokers are"):
        gathered({"acks": 1})
    assert bootstrap_of({"metadata.broker.list": "y:2"}) == "y:2"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"no.such.thing": 1}, "there is no setting no.such.thing"),
        ({"compression.type": "zip"}, "zip"),
        ({"acks": 1, "enable.idempotence": True}, "acks"),
        ({"error_cb": 5}, "error_cb"),
    ],
)
def test_a_bad_setting_is_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(BadSetting, match=said):
        build(confluent_kafka.Producer, {"bootstrap.servers": "127.0.0.1:1", "log_level": 0, **settings})
