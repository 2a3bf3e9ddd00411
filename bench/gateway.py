"""What HTTP costs: records written and read through a gateway, one and many in a request.

PYTHONPATH=tests .venv/bin/python bench/gateway.py [--seconds 3] [--clients 8]

Broker, gateway and clients share this machine; each is a process of its own, and so is every client.
"""

import argparse
import http.client
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from support.process import UpProcess

VALUE = "x" * 100
JSON_V2 = "application/vnd.kafka.json.v2+json"


class Done(NamedTuple):
    """What a client has done in its time."""

    requests: int
    records: int
    latencies_ms: list[float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--clients", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root, UpProcess(Path(root)) as up:
        ask(up.http, "POST", "/api/v1/topics", {"name": "bench", "partitions": 6})
        cluster = ask(up.http, "GET", "/v3/clusters")["data"][0]["cluster_id"]
        v3 = f"/v3/clusters/{cluster}/topics/bench/records"
        for clients in (1, options.clients):
            for count in (1, 100, 1000):
                body = json.dumps({"records": [{"value": VALUE}] * count}).encode()
                job = partial(
                    write, up.http, "/topics/bench", body, JSON_V2, count=count, seconds=options.seconds
                )
                report(f"v2 produce, {clients} clients, {count:>4} records a request", job, clients)
        one = json.dumps({"value": {"type": "STRING", "data": VALUE}}).encode()
        for count in (1, 100):
            job = partial(
                write, up.http, v3, one * count, "application/json", count=count, seconds=options.seconds
            )
            what = f"v3 produce, {options.clients} clients, {count:>4} records a request"
            report(what, job, options.clients)
        report("v2 consume, 1 client", partial(read, up.http, options.seconds), 1)


def report(what: str, job: Callable[[], Done], clients: int) -> None:
    """Run the job in so many processes, and print a line about them."""
    with multiprocessing.get_context("spawn").Pool(clients) as pool:
        waiting = [pool.apply_async(job) for _ in range(clients)]
        done: list[Done] = [each.get(600) for each in waiting]
    latencies = sorted(ms for each in done for ms in each.latencies_ms)
    seconds = max(sum(each.latencies_ms) for each in done) / 1000
    requests = sum(each.requests for each in done) / seconds
    records = sum(each.records for each in done) / seconds
    middle, slow = statistics.median(latencies), latencies[int(len(latencies) * 0.99)]
    print(
        f"{what:<48} {requests:>7,.0f} requests/s {records:>9,.0f} records/s"
        f"   median {middle:.1f} ms, 99 % within {slow:.1f} ms",
        flush=True,
    )


def write(url: str, path: str, body: bytes, kind: str, *, count: int, seconds: float) -> Done:
    """Post the same again and again."""
    latencies: list[float] = []
    with connected(url) as connection:
        deadline = time.perf_counter() + seconds
        while (began := time.perf_counter()) < deadline:
            connection.request("POST", path, body, {"content-type": kind})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == http.client.OK, answer.status
            latencies.append(1000 * (time.perf_counter() - began))
    return Done(len(latencies), count * len(latencies), latencies)


def read(url: str, seconds: float) -> Done:
    """Read what was written, from the beginning."""
    made = ask(url, "POST", "/consumers/bench", {"format": "json", "auto.offset.reset": "earliest"})
    uri = urlsplit(made["base_uri"]).path
    places = [{"topic": "bench", "partition": index} for index in range(6)]
    ask(url, "POST", f"{uri}/assignments", {"partitions": places})
    latencies: list[float] = []
    records = 0
    with connected(url) as connection:
        deadline = time.perf_counter() + seconds
        while (began := time.perf_counter()) < deadline:
            connection.request("GET", f"{uri}/records?max_bytes=1000000", headers={"accept": JSON_V2})
            answer = connection.getresponse().read()
            latencies.append(1000 * (time.perf_counter() - began))
            records += answer.count(b'"offset":')
    ask(url, "DELETE", uri)
    return Done(len(latencies), records, latencies)


def ask(url: str, method: str, path: str, body: object = None) -> Any:
    with connected(url) as connection:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"content-type": "application/json"} if data else {})
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status < http.client.MULTIPLE_CHOICES, text
        return json.loads(text) if text else None


@contextmanager
def connected(url: str) -> Iterator[http.client.HTTPConnection]:
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    try:
        yield connection
    finally:
        connection.close()


if __name__ == "__main__":
    main()
