"""HDFS on loopback: a NameNode and a DataNode in one Java process."""

import os
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyspark

from compat.kafka_tools.java import find_jars
from headrace.java import find_java
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.storage.hadoop_files import HadoopFiles
from headrace.testing.process import NotReady
from ports import free_port

POM: Final = Path(__file__).with_name("pom.xml")
START_TIMEOUT_S: Final = 120.0


class HdfsServer:
    """A cluster with one DataNode."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._port = free_port()
        self._process: subprocess.Popen[bytes]
        self.url = f"hdfs://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        jars = (find_jars(POM), Path(pyspark.__file__).parent / "jars")
        with (self._root / "hdfs.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(find_java("HDFS"), "-Xmx512m", "-cp", os.pathsep.join(f"{each}/*" for each in jars)),
                    "org.apache.hadoop.test.MiniDFSClusterManager",
                    *("-datanodes", "1", "-format", "-nnport", str(self._port)),
                    *("-D", f"hdfs.minidfs.basedir={self._root / 'data'}"),
                ],
                cwd=self._root,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
                HadoopFiles(self.url).create("ready", b"yes")  # needs the DataNode, too
            except (OSError, PipelineError) as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    log = (self._root / "hdfs.log").read_text(errors="replace")
                    raise NotReady(f"HDFS does not answer: {error}\n{log[-2000:]}") from error
                time.sleep(0.2)
            else:
                return

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait()
