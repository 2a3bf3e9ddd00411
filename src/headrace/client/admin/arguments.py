"""Checks of the arguments of an Admin: names of topics, numbers of partitions, offsets and settings."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from headrace.client.consumer.arguments import partition_list
from headrace.client.errors import BadSetting, NoSuchTopic, why_no_topic
from headrace.client.settings import LAST_OFFSET, LAST_PARTITION, whole
from headrace.protocol.ids import TopicPartition

Configs = Mapping[str, str | float | bool]
BROKERS_CHOICE: Final = -1  # how many partitions or replicas: what the brokers are configured for
ALL: Final = -1  # the offset before which everything is
MOST_PARTITIONS: Final = 100_000  # that librdkafka asks for
MOST_REPLICAS: Final = 10_000


def check_topic(name: Any) -> None:
    """Raise NoSuchTopic if a topic cannot have this name."""
    if why_no_topic(name):
        raise NoSuchTopic(name)


def check_new_topic(name: Any) -> None:
    """Raise NoSuchTopic for a name that no request can carry; brokers refuse other invalid names."""
    if not isinstance(name, str) or not name.isprintable():
        raise NoSuchTopic(name)


def number_of(what: str, given: Any, low: int, high: int, meaning: str) -> int:
    """Return the number; BadSetting says what it has to be."""
    number = whole(given)
    if number is None or not low <= number <= high:
        raise BadSetting(f"{what}={given!r:.80}: it is {meaning}")
    return number


def count_of(what: str, given: Any, most: int) -> int:
    meaning = f"an int from 1 to {most:,}, or None for what the brokers are configured for"
    return BROKERS_CHOICE if given is None else number_of(what, given, BROKERS_CHOICE, most, meaning)


def total_of(given: Any) -> int:
    return number_of("total", given, 1, MOST_PARTITIONS, f"an int from 1 to {MOST_PARTITIONS:,}")


def broker_of(given: Any) -> int:
    return number_of("broker_id", given, 0, LAST_PARTITION, "an int, such as 1")


def time_of(given: Any) -> int:
    """Return a timestamp; negative ones have special meanings for brokers."""
    meaning = "an int, of milliseconds since 1970 (of a datetime: int(moment.timestamp() * 1000))"
    return number_of("time_ms", given, 0, LAST_OFFSET, meaning)


def group_offsets(given: Any) -> dict[TopicPartition, int]:
    try:
        places = partition_list(given) if isinstance(given, Mapping) else None
    except BadSetting:
        places = None
    if places is None:
        raise BadSetting(f"offsets are by partition, such as {{('orders', 0): 5}}, not {given!r:.80}")
    return {
        place: number_of("offset", offset, 0, LAST_OFFSET, "an int from 0 on")
        for place, offset in zip(places, given.values(), strict=True)
    }


def ends_of(given: Any) -> dict[int, int]:
    """Return the offset of each partition before which records are to be deleted."""
    if not isinstance(given, Mapping):
        raise BadSetting(f"`before` is an offset for each partition, such as {{0: 5}}, not {given!r:.80}")
    meaning = f"an int from 0 on, or {ALL} for all records"
    return {
        number_of("partition", partition, 0, LAST_PARTITION, "an int from 0 on"): number_of(
            "offset", offset, ALL, LAST_OFFSET, meaning
        )
        for partition, offset in given.items()
    }


def texts(configs: Any, what: str) -> dict[str, str]:
    """Return the values of settings as Kafka has them, which are all text: "true" for True."""
    if not isinstance(configs, Mapping):
        raise BadSetting(f"{what} is a dict, such as {{'retention.ms': 1000}}, not {configs!r:.80}")
    for name, value in configs.items():
        _check_name(name)
        if value is None:
            raise BadSetting(f"{name} has no value: what goes back to the default is among `unsets`")
        if "\0" in str(value):
            raise BadSetting(f"{name}={value!r:.80}: a value has no zero in it")
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in configs.items()
    }


def names_of(unsets: Any) -> list[str]:
    if isinstance(unsets, str | bytes) or not isinstance(unsets, Iterable):
        raise BadSetting(f"unsets is a list of names, such as ['retention.ms'], not {unsets!r:.80}")
    names = list(unsets)
    for name in names:
        _check_name(name)
    return list(dict.fromkeys(names))


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.isprintable():
        raise BadSetting(f"a setting is named by a str, such as 'retention.ms', not {name!r:.80}")
