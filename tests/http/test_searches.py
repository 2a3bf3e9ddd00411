"""Searches: what many of them cost, and that nothing is searched for clients that have left."""

import logging
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from confluent_kafka import Producer

from headrace.client.records.following import Follower
from headrace.client.records.one_by_one import Record
from headrace.gateway.rest.hub import SEARCHES, WAITING
from http_amplification.measuring import Served
from http_support.asking import TIMEOUT_S, WAIT_S, Asking, wait_until
from support.process import UpProcess

PARTITIONS = 12
ROWS = 400_000
MOST_GROWN_BYTES = 240 * 2**20  # of four searches at a time, and of what librdkafka fetches for them
SEARCHED = "text=nothing&scan=10000000&timeout_ms=30000"


@pytest.fixture(scope="module")
def large(gateway: Asking, broker: UpProcess) -> str:
    """A topic of small compressed records, of which a response of a broker has tens of thousands."""
    topic = gateway.topic("large", PARTITIONS)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "compression.type": "lz4",
            "linger.ms": 100,
            "batch.num.messages": 50_000,
            "queue.buffering.max.messages": 2 * ROWS,
        }
    )
    for number in range(ROWS):
        producer.produce(topic, b'{"total": %d}' % number, partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0
    return topic


def test_memory_of_many_searches_is_bounded(broker: UpProcess, large: str) -> None:
    with Served(broker.bootstrap, str(Path(__file__).parents[1])) as served:

        def search(_number: int) -> int:
            url = f"{served.url}/api/v1/topics/{large}/messages?text=nothing&timeout_ms=2000"
            return requests.get(url, timeout=TIMEOUT_S).status_code

        search(0)
        before = served.measured()
        with ThreadPoolExecutor(2 * SEARCHES) as threads:
            assert set(threads.map(search, range(2 * SEARCHES))) == {200}
        grown_bytes = served.measured()["peak_bytes"] - before["rss_bytes"]
    assert grown_bytes < MOST_GROWN_BYTES, f"{grown_bytes / 2**20:.0f} MB"


@pytest.mark.parametrize(
    "path", ["/api/v1/topics/{}/messages", "/api/v1/topics/{}/messages/stream", "/ui/topics/{}"]
)
def test_searches_end_when_their_clients_leave(
    gateway: Asking, large: str, path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step_of_a_slow_broker(follower: Follower, timeout_s: float) -> list[Record]:
        time.sleep(0.5)
        return step(follower, timeout_s)

    # However fast the machine is, no search ends before its client leaves.
    step = Follower.step
    monkeypatch.setattr(Follower, "step", step_of_a_slow_broker)
    caplog.set_level(logging.DEBUG, "headrace.gateway.rest.hub")
    at = urlsplit(gateway.url)
    searched = f"{path.format(large)}?{SEARCHED}&where=beginning&plain=1"
    with ExitStack() as stack:
        for _ in range(2 * (SEARCHES + WAITING)):
            left = stack.enter_context(socket.create_connection((at.hostname, at.port), timeout=WAIT_S))
            left.sendall(f"GET {searched} HTTP/1.1\r\nHost: {at.netloc}\r\n\r\n".encode())

        def is_full() -> bool:
            try:
                answer = requests.get(f"{gateway.url}{searched}", timeout=5)
            except (requests.Timeout, requests.ConnectionError):  # it has waited, and has left by now
                return False
            return answer.status_code == 429 or '"error_code":42902' in answer.text

        wait_until(is_full, "a search more than may wait is not refused")

    wait_until(lambda: len(caplog.messages) >= WAITING, "searches run for clients that have left")
    assert set(caplog.messages) == {"a search is cancelled: its client has disconnected"}
    assert gateway.get(f"/api/v1/topics/{large}/messages?limit=1")["messages"]
