"""Checks of the arguments of a Producer: headers, timestamps, partitions and topics.

librdkafka checks less: it would send `str(name)` of a header's name that is not text, and cut a name at a
zero byte.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from headrace.client.errors import BadSetting, NoSuchTopic, NotSerializable, why_no_topic
from headrace.client.settings import LAST_OFFSET, LAST_PARTITION, whole

Headers = Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]]


def header_list(headers: Headers, topic: str) -> list[tuple[str, bytes | str | None]]:
    """Return the headers as a new list, which may be extended."""
    if not isinstance(headers, Collection):  # an iterator would be empty when the record is retried
        raise _bad_headers(topic, headers)
    pairs: list[Any] = [*(headers.items() if isinstance(headers, Mapping) else headers)]
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise _bad_headers(topic, pair)
        name, value = pair
        if not isinstance(name, str) or "\0" in name:
            raise NotSerializable(topic, "headers", f"a name is a str without a zero in it, not {name!r:.80}")
        if value is not None and not isinstance(value, bytes | str):
            why = f"{name} is bytes, str or None, not {type(value).__name__}"
            raise NotSerializable(topic, "headers", why)
    return [(name, value) for name, value in pairs]


def check_many(topic: Any, values: Any) -> None:
    """Refuse an invalid topic, and a str or bytes where many values are expected."""
    if why_no_topic(topic):
        raise NoSuchTopic(topic)
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise BadSetting(f"send_all takes many values, such as a list, not {values!r:.80}: `send` takes one")


def time_of(timestamp_ms: Any) -> int:
    """Return a timestamp in milliseconds, 0 for now; BadSetting if it is not a valid one."""
    time_ms = whole(timestamp_ms or 0)
    if time_ms is None or not 0 <= time_ms <= LAST_OFFSET:
        raise BadSetting(
            f"timestamp_ms={timestamp_ms!r}: it is an int, of milliseconds since 1970, or 0 for now "
            "(of a datetime: int(moment.timestamp() * 1000))"
        )
    return time_ms


def check_partition(partition: Any) -> None:
    """Raise BadSetting if it is not a partition number; whether it exists is not checked."""
    number = 0 if partition is None else whole(partition)
    if number is None or number > LAST_PARTITION:
        raise BadSetting(f"partition={partition!r}: it is an int from 0 on, or None for any")


def _bad_headers(topic: str, given: object) -> NotSerializable:
    return NotSerializable(topic, "headers", f"they are a dict, or pairs (name, value), not {given!r:.80}")
