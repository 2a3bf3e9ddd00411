"""FastStream: one application writes orders, a group of two consumers adds them up and publishes totals."""

import asyncio
import sys
from collections import Counter

from faststream import FastStream
from faststream.confluent import KafkaBroker

BOOTSTRAP, ORDERS = sys.argv[1], int(sys.argv[2])

broker = KafkaBroker(BOOTSTRAP)
app = FastStream(broker)
totals: Counter[str] = Counter()
seen = 0


async def total(order: dict[str, object]) -> dict[str, object]:
    global seen  # noqa: PLW0603
    person = str(order["person"])
    totals[person] += int(str(order["count"]))
    seen += 1
    if seen == ORDERS:
        app.exit()
    return {"person": person, "total": totals[person]}


# Two subscribers in a group: each gets some of the partitions.
for _ in range(2):
    subscriber = broker.subscriber("orders", group_id="faststream", auto_offset_reset="earliest")
    subscriber(broker.publisher("totals")(total))


@app.after_startup
async def write() -> None:
    for number in range(ORDERS):
        person = f"person-{number % 3}"
        await broker.publish({"person": person, "count": 1}, topic="orders", key=person.encode())


asyncio.run(app.run())
