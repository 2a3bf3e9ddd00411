"""Who writes for clients of other languages and reads what they wrote: confluent-kafka and the REST proxy."""

from collections.abc import Sequence
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]

from compat.registry_clients.schemas import PROTOBUF, Format
from http_support.asking import Asking, v2, wait_until

TIMEOUT_S: Final = 30.0
EMBEDDED: Final = {"AVRO": "avro", "JSON": "jsonschema", "PROTOBUF": "protobuf"}


def registered(registry: SchemaRegistryClient, form: Format, subject: str) -> tuple[int, Schema]:
    """The order of a format, which is registered if it is not, as is what it refers to."""
    registry.register_schema(form.reference, Schema(form.item, form.type))
    version = registry.get_latest_version(form.reference).version
    schema = Schema(form.order, form.type, [SchemaReference(form.reference, form.reference, version)])
    return registry.register_schema(subject, schema), schema


class Confluent:
    """Python's client, with its serialisers."""

    def __init__(self, bootstrap: str, registry: SchemaRegistryClient, order: Any) -> None:
        self._bootstrap = bootstrap
        self._registry = registry
        self._order = order

    def write(self, form: Format, topic: str, values: Sequence[Any]) -> None:
        serialize, context = self._serializer(form, topic), SerializationContext(topic, MessageField.VALUE)
        producer = Producer({"bootstrap.servers": self._bootstrap})
        for value in values:
            made = self._order(**value) if form is PROTOBUF else value
            producer.produce(topic, serialize(made, context), partition=0)
        assert producer.flush(TIMEOUT_S) == 0

    def read(self, form: Format, topic: str, count: int) -> list[Any]:
        deserialize, context = self._deserializer(form), SerializationContext(topic, MessageField.VALUE)
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "unused"})
        consumer.assign([TopicPartition(topic, 0, 0)])
        messages = consumer.consume(count, TIMEOUT_S)
        consumer.close()
        found = [deserialize(each.value(), context) for each in messages]
        return [MessageToDict(each) for each in found] if form is PROTOBUF else found

    def _serializer(self, form: Format, topic: str) -> Any:
        if form is PROTOBUF:
            return ProtobufSerializer(self._order, self._registry)
        _, schema = registered(self._registry, form, f"{topic}-value")
        if form.type == "AVRO":
            return AvroSerializer(self._registry, schema)
        return JSONSerializer(schema, self._registry)

    def _deserializer(self, form: Format) -> Any:
        if form is PROTOBUF:
            return ProtobufDeserializer(self._order, schema_registry_client=self._registry)
        if form.type == "AVRO":
            return AvroDeserializer(self._registry)
        return JSONDeserializer(None, schema_registry_client=self._registry)


class Proxy:
    """The REST proxy, v2."""

    def __init__(self, gateway: Asking, registry: SchemaRegistryClient) -> None:
        self._gateway = gateway
        self._registry = registry

    def write(self, form: Format, topic: str, values: Sequence[Any]) -> None:
        schema_id, _ = registered(self._registry, form, f"{topic}-value")
        body = {"value_schema_id": schema_id, "records": [{"value": value} for value in values]}
        answer = self._gateway.post(f"/topics/{topic}", body, kind=v2(EMBEDDED[form.type]))
        assert [each["error"] for each in answer["offsets"]] == [None] * len(values)

    def read(self, form: Format, topic: str, count: int) -> list[Any]:
        embedded = EMBEDDED[form.type]
        consumer = {"format": embedded, "auto.offset.reset": "earliest"}
        uri = self._gateway.post(f"/consumers/{topic}", consumer)["base_uri"]
        self._gateway.post(f"{uri}/assignments", {"partitions": [{"topic": topic, "partition": 0}]})
        found: list[Any] = []

        def enough() -> bool:
            found.extend(self._gateway.get(f"{uri}/records", accept=v2(embedded)))
            return len(found) >= count

        wait_until(enough, f"the proxy gave {found}")
        self._gateway.delete(uri)
        return [each["value"] for each in found]
