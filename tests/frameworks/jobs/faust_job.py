"""faust-streaming: an agent adds up orders in a table, whose changes are in a changelog topic."""

import os
import signal
import sys

import faust

BOOTSTRAP, ORDERS, DIRECTORY = sys.argv[1], int(sys.argv[2]), sys.argv[3]


class Order(faust.Record, serializer="json"):
    person: str
    count: int


class Total(faust.Record, serializer="json"):
    person: str
    total: int


app = faust.App(
    "faust-job",
    broker=f"kafka://{BOOTSTRAP}",
    store="memory://",
    topic_partitions=3,
    topic_replication_factor=1,
    datadir=DIRECTORY,
    web_enabled=False,
)
orders = app.topic("orders", value_type=Order, key_type=str)
totals = app.topic("totals", value_type=Total, key_type=str)
table = app.Table("by-person", default=int, partitions=3)
seen = 0


@app.agent(orders)
async def add(stream: faust.StreamT[Order]) -> None:
    global seen  # noqa: PLW0603
    async for order in stream:
        table[order.person] += order.count
        await (await totals.send(key=order.person, value=Total(order.person, table[order.person])))
        seen += 1
        if seen == ORDERS:
            os.kill(os.getpid(), signal.SIGTERM)  # the worker stops, and commits what was processed


@app.task
async def write() -> None:
    for number in range(ORDERS):
        person = f"person-{number % 3}"
        await orders.send(key=person, value=Order(person, 1))


faust.Worker(app, loglevel="WARNING").execute_from_commandline()
