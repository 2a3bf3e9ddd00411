"""Celery with kombu's Kafka transport: tasks are sent to a topic, and a worker runs them."""

import subprocess
import sys

from celery import Celery

BOOTSTRAP, ORDERS, DIRECTORY, *WORKER = sys.argv[1:]

app = Celery("__main__", broker=f"confluentkafka://{BOOTSTRAP}", backend=f"file://{DIRECTORY}")
app.conf.update(
    task_default_queue="orders",
    worker_enable_remote_control=False,  # the transport has no fanout
    broker_transport_options={"wait_time_seconds": 1},
)


@app.task
def double(number: int) -> int:
    return number * 2


def main() -> None:
    sent = [double.delay(number) for number in range(int(ORDERS))]
    worker = subprocess.Popen([sys.executable, *sys.argv, "worker"])
    try:
        print(sum(each.get(timeout=60) for each in sent))  # noqa: T201
    finally:
        worker.terminate()
        status = worker.wait(60)
    sys.exit(status)


if WORKER:
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=WARNING"]
    app.worker_main(["worker", "--pool=solo", *quiet])
else:
    main()
