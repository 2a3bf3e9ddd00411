"""A cluster that looks lived in: a shop, a fleet of trucks, a pipeline; and names that try to be markup."""

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import quote
from urllib.request import Request, urlopen

from confluent_kafka import Consumer, Producer, TopicPartition

from headrace.client.admin.admin import Admin
from headrace.pipeline.progress import TOPIC, Progress

HOSTILE: Final = """<script>window.hurt=1</script><img src=x onerror="window.hurt=1">"""
TRANSACTIONAL_ID: Final = "ledger-service.eu"
CITIES: Final = ("Hamburg", "Rotterdam", "Antwerp", "Gdańsk", "Le Havre")


def seed(bootstrap: str, *, replicas: int = 1, records: int = 400) -> None:
    """Topics, groups with lag, and the progress of a pipeline that runs and of one that has failed."""
    admin = Admin(bootstrap)
    for name, partitions, configs in (
        ("orders", 6, {"retention.ms": "604800000"}),
        ("payments", 3, {"min.insync.replicas": str(min(2, replicas))}),
        ("truck-positions", 4, {"retention.ms": "86400000", "retention.bytes": "1073741824"}),
        ("customers", 2, {"cleanup.policy": "compact"}),
        ("empty-one", 1, {}),
        (TOPIC, 1, {}),
    ):
        admin.create_topic(name, partitions=partitions, replicas=replicas, configs=configs)
    _produce(bootstrap, records)
    for group, topic, share in (
        ("billing", "orders", 0.7),
        ("warehouse", "orders", 0.95),
        ("fraud", "payments", 0.4),
    ):
        commit(bootstrap, group, topic, share)
    commit(bootstrap, HOSTILE, "customers", 0.5)
    admin.create_user(HOSTILE, "secret")
    admin.alter_quotas({"user": "billing-service.eu", "client-id": None}, sets={"consumer_byte_rate": 5e6})
    admin.alter_quotas({"user": HOSTILE, "client-id": HOSTILE}, sets={"request_percentage": 12.5})


def open_transactions(bootstrap: str) -> None:
    """A transaction in partition 0 that is open for all tests."""
    with Admin(bootstrap) as admin:
        admin.create_topic("ledger", partitions=2)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": TRANSACTIONAL_ID,
            "transaction.timeout.ms": 900_000,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("ledger", b"42", partition=0)
    assert producer.flush(20) == 0


def register_schemas(url: str) -> None:
    """An Avro schema in two versions, a JSON Schema, and one of Protobuf."""
    fields = [{"name": "order", "type": "string"}, {"name": "total", "type": "double"}]
    order = {"type": "record", "name": "Order", "namespace": "shop", "fields": fields}
    more = {**order, "fields": [*fields, {"name": "currency", "type": "string", "default": "EUR"}]}
    payment = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
    position = 'syntax = "proto3";\nmessage Position {\n  string truck = 1;\n  double lat = 2;\n}\n'
    for subject, kind, text in (
        ("orders-value", "AVRO", json.dumps(order)),
        ("orders-value", "AVRO", json.dumps(more)),
        ("payments-value", "JSON", json.dumps(payment)),
        ("truck-positions-value", "PROTOBUF", position),
        (HOSTILE, "AVRO", json.dumps({"type": "string", "doc": HOSTILE})),
    ):
        body = json.dumps({"schema": text, "schemaType": kind}).encode()
        request = Request(
            f"{url}/subjects/{quote(subject, safe='')}/versions", body, {"content-type": "application/json"}
        )
        with urlopen(request) as answer:
            assert answer.status == 200


def _produce(bootstrap: str, records: int) -> None:
    chance = random.Random(8)
    producer = Producer({"bootstrap.servers": bootstrap})
    now_ms = int(time.time() * 1000)
    for index in range(records):
        at_ms = now_ms - (records - index) * 1500
        order = f"o-{100000 + index}"
        customer = f"c-{chance.randint(1, 60):04}"
        value = {
            "order": order,
            "customer": customer,
            "total": round(chance.uniform(4, 480), 2),
            "currency": "EUR",
            "items": [{"sku": f"sku-{chance.randint(1, 900)}", "n": chance.randint(1, 4)}],
        }
        headers = [("source", b"shop-web"), ("trace", f"{chance.getrandbits(64):016x}".encode())]
        producer.produce("orders", json.dumps(value), customer, timestamp=at_ms, headers=headers)
        paid = {
            "order": order,
            "method": chance.choice(["card", "transfer", "invoice"]),
            "ok": index % 17 != 0,
        }
        producer.produce("payments", json.dumps(paid), order, timestamp=at_ms)
        truck = f"truck-{chance.randint(1, 60):02}"
        position = {
            "truck": truck,
            "lat": round(chance.uniform(51, 55), 5),
            "lon": round(chance.uniform(3, 19), 5),
            "km": round(chance.uniform(0, 900), 1),
            "to": chance.choice(CITIES),
        }
        producer.produce("truck-positions", json.dumps(position, ensure_ascii=False), truck, timestamp=at_ms)
    producer.produce("customers", HOSTILE, HOSTILE, headers=[(HOSTILE, HOSTILE.encode())])
    producer.produce("customers", b"\x00\xff\xfe binary", b"\x80\x81")
    producer.produce("customers", None, "c-0001")
    for each in progress(now_ms):
        producer.produce(TOPIC, each.encode(), each.query)
    assert producer.flush(20) == 0


STEPS: Final = (
    {"name": "positions", "kind": "source", "inputs": [], "about": "topic truck-positions"},
    {"name": "fast", "kind": "view", "inputs": ["positions"], "about": ""},
    {"name": "archive", "kind": "sink", "inputs": ["positions"], "about": f"Delta {HOSTILE}"},
    {"name": "alerts", "kind": "sink", "inputs": ["fast"], "about": "topic truck-alerts"},
)


def progress(now_ms: int) -> Iterator[Progress]:
    """What Spark said of two pipelines in the last minutes."""
    chance = random.Random(3)
    for query in ("trucks.archive", "trucks.alerts"):
        began_ms = now_ms - 610_000
        yield Progress(pipeline="trucks", query=query, event="started", at_ms=began_ms, graph=STEPS)
    yield Progress(
        pipeline="trucks",
        query="trucks.alerts",
        event="restarting",
        at_ms=now_ms - 609_000,
        error="truck-alerts-0 has no leader",
        restarts=1,
    )
    yield Progress(
        pipeline="trucks",
        query="trucks.alerts",
        event="started",
        at_ms=now_ms - 608_000,
        restarts=1,
        graph=STEPS,
    )
    for batch in range(60):
        at_ms = now_ms - (60 - batch) * 10_000
        rows = chance.randint(700, 1200)
        lags = {f"truck-positions-{index}": chance.randint(0, 90 * (index + 1)) for index in range(4)}
        for query, share in (("trucks.archive", 1.0), ("trucks.alerts", 0.04)):
            yield Progress(
                pipeline="trucks",
                query=query,
                event="batch",
                at_ms=at_ms,
                batch=batch,
                rows=rows,
                rows_per_s=rows / 10,
                processed_per_s=rows / 4,
                written=int(rows * share),
                written_per_s=rows * share / 10,
                took_ms=chance.randint(900, 4200),
                lag=sum(lags.values()),
                lags=lags,
                state_rows=60 if query.endswith("alerts") else 0,
                state_bytes=18_432,
                watermark="2026-11-15T18:10:00.000Z",
                broken={"positions": {"a known truck": batch % 2}},
            )
    yield Progress(pipeline="shop", query="shop.revenue", event="started", at_ms=now_ms - 400_000)
    yield Progress(
        pipeline="shop",
        query="shop.revenue",
        event="batch",
        at_ms=now_ms - 380_000,
        batch=0,
        rows=12,
        rows_per_s=1.2,
        written=12,
        written_per_s=1.2,
        took_ms=2200,
        lag=4,
        lags={"orders-0": 4},
    )
    yield Progress(
        pipeline="shop",
        query="shop.revenue",
        event="failed",
        at_ms=now_ms - 360_000,
        error=f"column `totall` cannot be resolved; did you mean `total`? {HOSTILE}",
    )


def commit(bootstrap: str, group: str, topic: str, share: float) -> None:
    """The group has read that share of each partition, and has gone."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    places = [
        TopicPartition(topic, index)
        for index in consumer.list_topics(topic, timeout=10).topics[topic].partitions
    ]
    ends = {each.partition: consumer.get_watermark_offsets(each, timeout=10)[1] for each in places}
    consumer.commit(
        offsets=[TopicPartition(topic, each, int(end * share)) for each, end in ends.items()],
        asynchronous=False,
    )
    consumer.close()


@contextmanager
def member(bootstrap: str, group: str, topic: str, client: str = "shop-worker-1") -> Iterator[None]:
    """A consumer that is in the group meanwhile."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "client.id": client})
    consumer.subscribe([topic])
    deadline = time.monotonic() + 20
    while not consumer.assignment():
        consumer.poll(0.1)
        assert time.monotonic() < deadline, "nothing was assigned"
    try:
        yield
    finally:
        consumer.close()
