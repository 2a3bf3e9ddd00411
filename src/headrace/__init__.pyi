from headrace.client.admin.admin import Admin
from headrace.client.admin.aio import AsyncAdmin
from headrace.client.consumer.aio import AsyncConsumer
from headrace.client.consumer.consumer import Consumer
from headrace.client.consumer.message import Batch, Message
from headrace.client.errors import (
    BadSetting,
    ClientError,
    Closed,
    DeliveryFailed,
    Fenced,
    GroupActive,
    NoSuchGroup,
    NoSuchTopic,
    NoSuchTransactionalId,
    NotReadable,
    NotSerializable,
    Refused,
    TopicExists,
    TransactionAborted,
    Unreachable,
)
from headrace.client.producer.aio import AsyncProducer
from headrace.client.producer.delivery import Counts, Delivered, Receipt
from headrace.client.producer.producer import Producer
from headrace.client.serializers.formats import BYTES, JSON, STRING
from headrace.client.serializers.registry import Avro, JsonSchema, Protobuf
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.protocol.ids import TopicPartition

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
