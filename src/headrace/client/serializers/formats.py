"""Serialisation of keys and values: BYTES, STRING, JSON, or a function.

Producer("127.0.0.1:9092", key=STRING, value=JSON).send("orders", {"item": "tea"}, key="alice")
Consumer("127.0.0.1:9092", "orders", key=STRING, value=json.loads)

Formats with a schema registry are in `registry`. In every format None is no key or no value (a tombstone),
and is not serialised.
"""

import json
from collections.abc import Callable
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from confluent_kafka.serialization import Deserializer as ConfluentDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from confluent_kafka.serialization import Serializer as ConfluentSerializer

from headrace.client.errors import BadSetting
from headrace.client.serializers.registry_errors import raise_if_unreachable

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Field = Literal["key", "value"]
Headers = list[tuple[str, bytes | None]]

_FIELDS: Final = {"key": MessageField.KEY, "value": MessageField.VALUE}


class Format(Protocol[T]):
    """Both directions of one format."""

    def serialize(self, value: T, topic: str, field: Field, headers: Headers | None) -> bytes | None: ...

    def deserialize(self, data: bytes, topic: str, field: Field, headers: Headers | None) -> T: ...


class Bytes(Format[bytes]):
    """Bytes, unchanged. A str is accepted, too, and sent as UTF-8."""

    def serialize(self, value: bytes, topic: str, field: Field, headers: Headers | None) -> bytes:  # noqa: ARG002
        return value

    def deserialize(self, data: bytes, topic: str, field: Field, headers: Headers | None) -> bytes:  # noqa: ARG002
        return data


class String(Format[str]):
    """Text, as UTF-8."""

    def serialize(self, value: str, topic: str, field: Field, headers: Headers | None) -> bytes:  # noqa: ARG002
        if not isinstance(value, str):
            raise TypeError(f"{value!r:.80} is not a str")
        return value.encode()

    def deserialize(self, data: bytes, topic: str, field: Field, headers: Headers | None) -> str:  # noqa: ARG002
        return data.decode()


class Json(Format[Any]):
    """Values of JSON, without NaN and infinity."""

    def __init__(self) -> None:
        self._dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode

    def serialize(self, value: object, topic: str, field: Field, headers: Headers | None) -> bytes:  # noqa: ARG002
        return self._dumps(value).encode()

    def deserialize(self, data: bytes, topic: str, field: Field, headers: Headers | None) -> Any:  # noqa: ARG002
        return json.loads(data)


class _Function(Generic[T]):
    """One direction: a function of one argument, or one of confluent_kafka's serialisers."""

    def __init__(self, function: Callable[..., T]) -> None:
        self._function = function
        self._wants_context = isinstance(function, ConfluentSerializer | ConfluentDeserializer)

    def _call(self, value: object, topic: str, field: Field, headers: Headers | None) -> T:
        if not self._wants_context:
            return self._function(value)
        try:
            return self._function(value, SerializationContext(topic, _FIELDS[field], headers))
        except Exception as error:
            raise_if_unreachable(error)
            raise

    serialize = deserialize = _call


BYTES: Final = Bytes()
STRING: Final = String()
JSON: Final = Json()
_MEANT: Final[dict[type, object]] = {str: STRING, bytes: BYTES}

AnyFormat = Format[T] | Callable[[Any], T]


def close(*formats: object) -> None:
    """Close formats that have a connection to a registry."""
    for each in formats:
        if hasattr(each, "connect"):
            each.close()  # type: ignore[attr-defined]


def format_of(given: object, registry: object = None) -> Any:
    """Return the format; None for bytes, which need no call at all."""
    given = _instance(given)
    if given is None or given is BYTES:
        return None
    if hasattr(given, "connect"):  # a format with a registry, perhaps its own
        return given.connect(registry)
    if hasattr(given, "serialize") and hasattr(given, "deserialize"):
        return given
    if callable(given):
        return _Function(given)
    raise BadSetting(
        f"{given!r} is not a format: give BYTES, STRING, JSON, Avro(...), JsonSchema(...), "
        "Protobuf(...) or a function"
    )


def _instance(given: object) -> object:
    """Return the format that a class stands for: str for STRING, bytes for BYTES, a format's class for it."""
    if not isinstance(given, type):
        return given
    if given in _MEANT:
        return _MEANT[given]
    if not hasattr(given, "connect") and not (hasattr(given, "serialize") and hasattr(given, "deserialize")):
        return given
    try:
        return given()
    except TypeError as error:
        name = given.__name__
        raise BadSetting(f"{name} is a class that needs arguments: give {name}(...)") from error
