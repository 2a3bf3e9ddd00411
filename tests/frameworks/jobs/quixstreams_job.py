"""Quix Streams: totals by key, in a state store with a changelog topic, written exactly once."""

import sys
from typing import Any

from quixstreams import Application

BOOTSTRAP, ORDERS = sys.argv[1], int(sys.argv[2])

app = Application(
    broker_address=BOOTSTRAP,
    consumer_group="quix",
    auto_offset_reset="earliest",
    processing_guarantee="exactly-once",
    state_dir=sys.argv[3],
    commit_every=10,
)
orders = app.topic("orders", value_deserializer="json", value_serializer="json")
totals = app.topic("totals", value_serializer="json")

with app.get_producer() as producer:
    for number in range(ORDERS):
        person = f"person-{number % 3}"
        message = orders.serialize(key=person, value={"person": person, "count": 1})
        producer.produce(topic=orders.name, key=message.key, value=message.value)


def total(order: dict[str, Any], state: Any) -> dict[str, Any]:
    reached = state.get("total", 0) + order["count"]
    state.set("total", reached)
    return {"person": order["person"], "total": reached}


app.dataframe(orders).apply(total, stateful=True).to_topic(totals)
app.run(count=ORDERS, timeout=60.0)
