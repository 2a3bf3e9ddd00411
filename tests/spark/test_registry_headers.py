"""A pipeline over records whose schemas are named in headers, or before the data, or not at all."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from headrace.pipeline import Pipeline, Registry, Topic
from headrace.registry.formats import Schema, SchemaType
from headrace.registry.formats.protobuf.protobuf import parse
from spark.registry_plant import Gateway, RegistryPlant
from wire.confluent import make_topic, send

pytestmark = pytest.mark.extended

ORDER = """{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}"""
SHOP = 'syntax = "proto3"; message Other {} message Shop { string name = 1; }'
BY_HEADER = {"schema.id.serializer": header_schema_id_serializer}
STRANGER = ("__value_schema_id", b"\1" + bytes(16))


def messages(gateway: Gateway, topic: str) -> Iterator[dict[str, Any]]:
    """Orders 1 and 2 with headers, 3 and 4 without, and keys of which each second has one."""
    file = parse(Schema(SchemaType.PROTOBUF, SHOP), ())
    shop = GetMessageClass(file.pool.FindMessageTypeByName("Shop"))
    for number in range(1, 5):
        headers: list[tuple[str, bytes]] = [("trace", b"x")]
        of_values = AvroSerializer(gateway.client, ORDER, conf=BY_HEADER if number <= 2 else None)
        of_keys = ProtobufSerializer(shop, gateway.client, BY_HEADER if number % 2 else None)
        value = of_values({"id": number}, SerializationContext(topic, MessageField.VALUE, headers))
        key = of_keys(shop(name=f"shop {number}"), SerializationContext(topic, MessageField.KEY, headers))
        yield {"key": key, "value": value, "headers": headers}


def test_rows_are_the_same_wherever_a_schema_is_named(
    registry_plant: RegistryPlant, gateway: Gateway
) -> None:
    make_topic(registry_plant.bootstrap, "headed")
    good = list(messages(gateway, "headed"))
    unknown = {**good[0], "headers": [STRANGER, *good[0]["headers"][1:]]}
    deleted = {**good[0], "value": None}
    send(registry_plant.bootstrap, "headed", [{"partition": 0, **each} for each in (*good, unknown, deleted)])
    pipeline = Pipeline("headed")
    pipeline.source(
        "orders",
        topic="headed",
        decode=Registry(gateway.url),
        key=Registry(gateway.url, message="Shop"),
        bad_rows="dead-letter",
    )

    @pipeline.sink(Topic("headed-out", partitions=1), every="200 milliseconds")
    def out(orders: DataFrame) -> DataFrame:
        return orders.select("id", "_key.name").where("id is not null")

    registry_plant.run(pipeline)

    assert sorted((each["id"], each["name"]) for each in registry_plant.rows("headed-out")) == [
        (number, f"shop {number}") for number in range(1, 5)
    ]
    (reason,) = registry_plant.reasons("headed")
    assert reason.endswith("its schema 00000000-0000-0000-0000-000000000000 is not in the registry")
