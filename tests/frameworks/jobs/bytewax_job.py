"""Bytewax: a dataflow reads a topic up to its end, keeps a total for each key, and writes them to another."""

import json
import sys

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSinkMessage
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow
from bytewax.testing import run_main
from confluent_kafka import Producer

BOOTSTRAP, ORDERS = sys.argv[1], int(sys.argv[2])

producer = Producer({"bootstrap.servers": BOOTSTRAP})
for number in range(ORDERS):
    person = f"person-{number % 3}"
    producer.produce("orders", json.dumps({"person": person, "count": 1}), person)
producer.flush()


def total(reached: int | None, count: int) -> tuple[int, int]:
    now = (reached or 0) + count
    return now, now


flow = Dataflow("totals")
read = kop.input("read", flow, brokers=[BOOTSTRAP], topics=["orders"], tail=False)
op.raises("errors", read.errs)
counts = op.map("parse", read.oks, lambda message: (message.key.decode(), json.loads(message.value)["count"]))
totals = op.stateful_map("total", counts, total)
written = op.map(
    "write",
    totals,
    lambda each: KafkaSinkMessage(
        each[0].encode(), json.dumps({"person": each[0], "total": each[1]}).encode()
    ),
)
kop.output("out", written, brokers=[BOOTSTRAP], topic="totals")
run_main(flow)
