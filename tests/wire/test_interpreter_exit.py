"""Scripts that end while brokers, clients or a gateway of theirs run: none of our threads is left at exit."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from headrace.system.background import CANNOT_STOP
from wire.process import BrokerProcess
from wire.sdk import fresh

pytestmark = pytest.mark.skipif(CANNOT_STOP, reason="this Python starts no thread while it exits")

# `atexit` runs when the interpreter has joined the threads that it waits for. It goes down under all others.
PREAMBLE = """
import atexit, sys, threading
BOOTSTRAP, NAME = sys.argv[1:]
atexit.register(lambda: print("at exit:", *sorted(thread.name for thread in threading.enumerate())))
"""

FORGOTTEN = {
    "a broker": """
        from headrace.testing import Broker
        broker = Broker(topics={"orders": 1}).start()
        broker.produce("orders", "tea")
    """,
    "a broker that was killed": """
        from headrace.testing import Broker
        broker = Broker().start()
        broker.kill()
    """,
    "a broker whose data stay": """
        import tempfile
        from headrace.testing import Broker
        broker = Broker(data=tempfile.mkdtemp(), topics={"orders": 1}).start()
        atexit.register(lambda: __import__("shutil").rmtree(broker._data))
    """,
    "a process": """
        from headrace.testing import Broker
        broker = Broker(process=True).start()
    """,
    "a cluster": """
        from headrace.testing import Cluster
        cluster = Cluster(3).start()
    """,
    "a cluster, by an error": """
        from headrace.testing import Cluster
        cluster = Cluster(1).start()
        sys.exit("an error")
    """,
    "a gateway": """
        from urllib.request import urlopen
        from headrace.gateway.serving import serve_in_thread
        serving = serve_in_thread(BOOTSTRAP)
        url = serving.__enter__().url
        urlopen(url + "/brokers").close()
    """,
    "a producer": """
        import asyncio
        from headrace import AsyncProducer

        async def produce():
            global producer
            producer = await AsyncProducer(BOOTSTRAP).__aenter__()
            await producer.send(NAME, b"tea")

        asyncio.run(produce())
    """,
    "a consumer": """
        import asyncio
        from headrace import AsyncConsumer

        async def consume():
            global consumer
            consumer = await AsyncConsumer(BOOTSTRAP, "^none.*", group=NAME).__aenter__()

        asyncio.run(consume())
    """,
}


@pytest.mark.parametrize("forgotten", FORGOTTEN)
def test_no_thread_runs_when_the_interpreter_goes_down(
    forgotten: str, broker: BrokerProcess, tmp_path: Path
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PREAMBLE + dedent(FORGOTTEN[forgotten]), broker.bootstrap, fresh("topic")],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    failed = "error" in forgotten
    assert (ended.returncode, ended.stderr) == (int(failed), "an error\n" if failed else "")
    assert ended.stdout == "at exit: MainThread\n"
    assert list(tmp_path.iterdir()) == []
