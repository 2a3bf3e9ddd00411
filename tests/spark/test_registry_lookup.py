"""Which schema the columns are of, and what is said when there is none; without Spark."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.pipeline import PipelineError, Registry
from spark.registry_plant import Gateway
from wire.process import BrokerProcess

OLD = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
NEW = OLD.replace("]}", ', {"name": "item", "type": "string", "default": ""}]}')
PROTO = 'syntax = "proto3"; package shop; message Order { int32 id = 1; } message Refund { bool full = 1; }'


@pytest.fixture(scope="module")
def gateway(broker: BrokerProcess) -> Iterator[Gateway]:
    running = Gateway(broker.bootstrap)
    running.start()
    running.register("orders-value", OLD)
    running.register("orders-value", NEW)
    running.register("orders-key", '"string"')
    yield running
    running.close()


def refusal(registry: Registry, topic: str = "orders") -> str:
    with pytest.raises(PipelineError) as error:
        registry.settled(topic)
    return str(error.value)


def test_the_columns_are_those_of_the_latest_version_unless_another_is_asked_for(gateway: Gateway) -> None:
    url = gateway.url
    latest = "AVRO of orders-value version 2 (id bigint, item string)"
    assert Registry(url).settled("orders").label == latest
    assert Registry(url, subject="orders-value").settled("elsewhere,others").label == latest
    assert Registry(url, version=1).settled("orders").label == "AVRO of orders-value version 1 (id bigint)"
    assert Registry(url).settled("orders", "key").label == "AVRO of orders-key version 1 (value string)"


def test_schemas_that_a_schema_refers_to_are_fetched_with_it(gateway: Gateway) -> None:
    country = '{"type": "record", "name": "Country", "fields": [{"name": "code", "type": "string"}]}'
    gateway.register("country", country)
    city = country.replace("Country", "City").replace('"string"', '"Country"')
    gateway.register("city", city, references={"Country": "country"})
    gateway.register("trips-value", OLD.replace('"long"', '"City"'), references={"City": "city"})
    found = Registry(gateway.url).settled("trips")
    assert found.label == "AVRO of trips-value version 1 (id struct<code:struct<code:string>>)"


def test_the_columns_may_be_those_of_a_file_and_nobody_is_asked(tmp_path: Path) -> None:
    (tmp_path / "order.proto").write_text(PROTO)
    nobody = "http://127.0.0.1:1"
    for message, columns in ((None, "id int"), ("shop.Refund", "full boolean")):
        found = Registry(nobody, schema=str(tmp_path / "order.proto"), message=message).settled("orders")
        assert found.label == f"PROTOBUF of {tmp_path / 'order.proto'} ({columns})"


def test_a_registry_that_does_not_answer_is_to_be_started() -> None:
    registry = Registry("http://me:secret@127.0.0.1:1")
    assert refusal(registry) == (
        "no registry answers at http://127.0.0.1:1: connection refused: start it (`headrace up` has one, "
        "and prints its address), or correct the address in Registry('http://127.0.0.1:1')"
    )
    assert "secret" not in repr(registry)
    assert refusal(Registry("127.0.0.1:8080")) == (
        "127.0.0.1:8080: expected the registry's address, such as http://127.0.0.1:8080"
    )


def test_a_subject_that_is_not_there_is_to_be_registered(gateway: Gateway) -> None:
    assert refusal(Registry(gateway.url), "nothing") == (
        f"the registry at {gateway.url} has no subject nothing-value: register its schema, "
        "`headrace schema register nothing-value FILE`, or name another subject, "
        'Registry(..., subject="...")'
    )
    assert refusal(Registry(gateway.url, version=7)) == (
        f"the registry at {gateway.url} has no version 7 of orders-value: "
        "`headrace schema list orders-value` lists its versions"
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"schema": "nowhere.avsc"}, "nowhere.avsc cannot be read: "),
        ({"schema": "order.xsd"}, "order.xsd: expected a file with a schema that ends in .avsc, "),
        ({"message": "shop.Order"}, "AVRO of orders-value version 2: the schema is AVRO: only "),
    ],
)
def test_what_cannot_be_is_refused(gateway: Gateway, options: dict[str, str], sentence: str) -> None:
    assert refusal(Registry(gateway.url, **options)).startswith(sentence)  # type: ignore[arg-type]


def test_several_topics_need_a_subject(gateway: Gateway) -> None:
    assert refusal(Registry(gateway.url), "orders,refunds") == (
        "orders,refunds are several topics, and the columns are those of one schema: "
        'name its subject, Registry(..., subject="...")'
    )
