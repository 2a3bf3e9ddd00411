"""Headrace: a distributed, replicated commit log that any Kafka client can use.

from headrace import JSON, Consumer, Producer

What programs use is imported when it is first asked for: a broker needs none of it, and starts sooner.
Their types are in `__init__.pyi`: an import that only a type checker follows would make every module of the
broker depend on its clients.
"""

from importlib import import_module
from typing import Any, Final

__version__ = "0.1.0"

_FROM: Final = {
    "admin.admin": ("Admin",),
    "admin.aio": ("AsyncAdmin",),
    "consumer.aio": ("AsyncConsumer",),
    "producer.aio": ("AsyncProducer",),
    "consumer.consumer": ("Consumer",),
    "consumer.message": ("Batch", "Message"),
    "producer.delivery": ("Counts", "Delivered", "Receipt"),
    "errors": (
        "BadSetting",
        "ClientError",
        "Closed",
        "DeliveryFailed",
        "Fenced",
        "GroupActive",
        "NoSuchGroup",
        "NoSuchTopic",
        "NoSuchTransactionalId",
        "NotReadable",
        "NotSerializable",
        "Refused",
        "TopicExists",
        "TransactionAborted",
        "Unreachable",
    ),
    "producer.producer": ("Producer",),
    "serializers.formats": ("BYTES", "JSON", "STRING"),
    "serializers.registry": ("Avro", "JsonSchema", "Protobuf"),
    "wire.connection_settings": ("ConnectionSettings",),
}
_MODULES: Final = {name: f"headrace.client.{module}" for module, names in _FROM.items() for name in names}
_MODULES["TopicPartition"] = "headrace.protocol.ids"

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
    "Batch",
    "TopicPartition",
    "ConnectionSettings",
    "Receipt",
    "Delivered",
    "Counts",
    "ClientError",
    "BadSetting",
    "Unreachable",
    "NoSuchTopic",
    "TopicExists",
    "NoSuchGroup",
    "GroupActive",
    "NoSuchTransactionalId",
    "Refused",
    "DeliveryFailed",
    "TransactionAborted",
    "Fenced",
    "NotSerializable",
    "NotReadable",
    "Closed",
]


def __getattr__(name: str) -> Any:
    """What was asked for, imported now."""
    if name == "Place":  # what TopicPartition was called at first
        name = "TopicPartition"
    if name not in _MODULES:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    found = getattr(import_module(_MODULES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
