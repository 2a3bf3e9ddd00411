"""HDFS on loopback: a NameNode and a DataNode in one Java process."""

import os
import socket
from pathlib import Path
from typing import Final

import pyspark

from compat.kafka_tools.java import find_jars
from headrace.pipeline.storage.hadoop_files import HadoopFiles
from headrace.system.java import find_java
from spark.storage_server import StorageServer

POM: Final = Path(__file__).with_name("pom.xml")


class HdfsServer(StorageServer):
    """A cluster with one DataNode."""

    @property
    def url(self) -> str:
        return f"hdfs://127.0.0.1:{self._port}"

    def _command(self) -> list[str | Path]:
        jars = (find_jars(POM), Path(pyspark.__file__).parent / "jars")
        return [
            *(find_java("HDFS"), "-Xmx512m", "-cp", os.pathsep.join(f"{each}/*" for each in jars)),
            "org.apache.hadoop.test.MiniDFSClusterManager",
            *("-datanodes", "1", "-format", "-nnport", str(self._port)),
            *("-D", f"hdfs.minidfs.basedir={self._root / 'data'}"),
        ]

    def _write(self) -> None:
        socket.create_connection(("127.0.0.1", self._port), 1).close()
        HadoopFiles(self.url).create("ready", b"yes")  # needs the DataNode, too
