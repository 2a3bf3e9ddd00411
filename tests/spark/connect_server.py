"""A Spark Connect server on loopback, out of the pyspark wheel."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

from headrace.spark.launcher import defaults, prepare
from ports import free_port
from support.process import NotReady

START_TIMEOUT_S: Final = 240.0
_SUBMIT: Final = Path(pyspark.__file__).parent / "bin" / "spark-submit"
_SERVER: Final = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextmanager
def connect_server(root: Path) -> Iterator[str]:
    """Yield the URL of a server."""
    prepare()
    port = free_port()
    settings = {
        **defaults("local"),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.extraJavaOptions": "",
        "spark.local.dir": str(root),
        "spark.sql.warehouse.dir": str(root / "warehouse"),
    }
    command = [str(_SUBMIT), "--master", "local[2]", "--class", _SERVER]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    log = root / "connect.log"
    with log.open("wb") as file:
        server = subprocess.Popen(
            [*command, "spark-internal"],
            cwd=root,
            env=dict(os.environ),
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while "server started at" not in (said := log.read_text(errors="replace")):
            if server.poll() is not None or time.monotonic() > deadline:
                raise NotReady(f"Spark Connect has not started:\n{said[-3000:]}")
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
