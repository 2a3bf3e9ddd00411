"""Headrace: a distributed, replicated commit log that any Kafka client can use.

from headrace import JSON, Consumer, Producer

What programs use is imported when it is first asked for: a broker needs none of it, and starts sooner.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from headrace.client.admin import Admin
    from headrace.client.aio_admin import AsyncAdmin
    from headrace.client.aio_consumer import AsyncConsumer
    from headrace.client.aio_producer import AsyncProducer
    from headrace.client.connection import Place
    from headrace.client.consumer import Consumer
    from headrace.client.consumer_message import Message
    from headrace.client.delivery import Counts, Delivered, Receipt
    from headrace.client.errors import (
        BadSetting,
        ClientError,
        Closed,
        DeliveryFailed,
        NoSuchGroup,
        NoSuchTopic,
        NotReadable,
        NotSerializable,
        TopicExists,
        Unreachable,
    )
    from headrace.client.producer import Producer
    from headrace.client.serializers import BYTES, JSON, STRING
    from headrace.client.serializers_registry import Avro, JsonSchema, Protobuf

__version__ = "0.1.0.dev0"

_FROM: Final = {
    "admin": ("Admin",),
    "aio_admin": ("AsyncAdmin",),
    "aio_consumer": ("AsyncConsumer",),
    "aio_producer": ("AsyncProducer",),
    "connection": ("Place",),
    "consumer": ("Consumer",),
    "consumer_message": ("Message",),
    "delivery": ("Counts", "Delivered", "Receipt"),
    "errors": (
        "BadSetting",
        "ClientError",
        "Closed",
        "DeliveryFailed",
        "NoSuchGroup",
        "NoSuchTopic",
        "NotReadable",
        "NotSerializable",
        "TopicExists",
        "Unreachable",
    ),
    "producer": ("Producer",),
    "serializers": ("BYTES", "JSON", "STRING"),
    "serializers_registry": ("Avro", "JsonSchema", "Protobuf"),
}
_MODULES: Final = {name: f"headrace.client.{module}" for module, names in _FROM.items() for name in names}

__all__ = [  # noqa: RUF022  what people look for first
    "Producer",
    "Consumer",
    "Admin",
    "AsyncProducer",
    "AsyncConsumer",
    "AsyncAdmin",
    "BYTES",
    "STRING",
    "JSON",
    "Avro",
    "JsonSchema",
    "Protobuf",
    "Message",
    "Place",
    "Receipt",
    "Delivered",
    "Counts",
    "ClientError",
    "BadSetting",
    "Unreachable",
    "NoSuchTopic",
    "TopicExists",
    "NoSuchGroup",
    "DeliveryFailed",
    "NotSerializable",
    "NotReadable",
    "Closed",
]


def __getattr__(name: str) -> Any:
    """What was asked for, imported now."""
    if name not in _MODULES:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    found = getattr(import_module(_MODULES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
