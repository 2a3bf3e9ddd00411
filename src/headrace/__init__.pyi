from headrace.client.admin import Admin
from headrace.client.aio_admin import AsyncAdmin
from headrace.client.aio_consumer import AsyncConsumer
from headrace.client.aio_producer import AsyncProducer
from headrace.client.connection import Place
from headrace.client.consumer import Consumer
from headrace.client.consumer_message import Batch, Message
from headrace.client.delivery import Counts, Delivered, Receipt
from headrace.client.errors import (
    BadSetting,
    ClientError,
    Closed,
    DeliveryFailed,
    GroupActive,
    NoSuchGroup,
    NoSuchTopic,
    NotReadable,
    NotSerializable,
    Refused,
    TopicExists,
    Unreachable,
)
from headrace.client.producer import Producer
from headrace.client.serializers import BYTES, JSON, STRING
from headrace.client.serializers_registry import Avro, JsonSchema, Protobuf

__version__: str

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
    "GroupActive",
    "Refused",
    "DeliveryFailed",
    "NotSerializable",
    "NotReadable",
    "Closed",
]
