"""Files on HDFS, through the Java client that comes with Spark, in a Java process of its own.

It reads Hadoop's configuration (HADOOP_CONF_DIR) and Kerberos tickets as every Hadoop client does. The
process is not Spark's: `pipeline status` runs without a session, and Spark's gets its settings at its start.
"""

import functools
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from headrace.pipeline.errors import PipelineError
from headrace.pipeline.storage.versions import File
from headrace.system.java import NoJava, find_java

SCHEMES: Final = ("hdfs", "viewfs")
_JVM_OPTIONS: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_TEMPORARY: Final = ".new"


class HadoopFiles:
    """The files below a URL such as hdfs://namenode:8020/pipelines."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._jvm = _gateway().jvm
        with _in_words(url):
            self._root = self._jvm.org.apache.hadoop.fs.Path(url)
            configuration = self._jvm.org.apache.hadoop.conf.Configuration()
            self._files = self._jvm.org.apache.hadoop.fs.FileSystem.get(self._root.toUri(), configuration)
            # Only this interface has a rename that replaces nothing.
            self._context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
                self._root.toUri(), configuration
            )

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, path) if path else self._root

    def names(self, path: str) -> Iterable[str]:
        with _in_words(self._url):
            found = _unless_missing(lambda: self._files.listStatus(self._path(path)))
            return [status.getPath().getName() for status in found or ()]

    def read(self, path: str) -> File | None:
        with _in_words(self._url):
            found: File | None = _unless_missing(lambda: self._read(self._path(path)))
            return found

    def _read(self, path: Any) -> File:
        modified_ms = self._files.getFileStatus(path).getModificationTime()
        stream = self._files.open(path)
        try:
            content = bytes(stream.readAllBytes())
        finally:
            stream.close()
        return File(content, datetime.fromtimestamp(modified_ms / 1000, UTC))

    def create(self, path: str, content: bytes) -> bool:
        target = self._path(path)
        with _in_words(self._url):
            beside = self._path(f"{path}.{secrets.token_hex(8)}{_TEMPORARY}")
            stream = self._files.create(beside, True)
            try:
                stream.write(content)
                stream.hsync()
            finally:
                stream.close()
            try:
                no_options = _gateway().new_array(self._jvm.org.apache.hadoop.fs.Options.Rename, 0)
                self._context.rename(beside, target, no_options)
            except Exception as error:
                self._files.delete(beside, False)
                if _class_of(error).endswith(".FileAlreadyExistsException"):
                    return False
                raise
        return True

    def delete(self, path: str) -> None:
        with _in_words(self._url):
            self._files.delete(self._path(path), True)


def _unless_missing(call: Callable[[], Any]) -> Any:
    """Return the result of a call; None if Java raises FileNotFoundException."""
    try:
        return call()
    except Exception as error:
        if _class_of(error) == "java.io.FileNotFoundException":
            return None
        raise


def _class_of(error: Exception) -> str:
    """Return the name of the Java exception, or "" for an error that is none."""
    thrown = getattr(error, "java_exception", None)
    return "" if thrown is None else str(thrown.getClass().getName())


@contextmanager
def _in_words(url: str) -> Iterator[None]:
    """Raise PipelineError for an exception of Java, with the first line of its message."""
    from py4j.protocol import Py4JError, Py4JJavaError  # noqa: PLC0415  an optional package

    try:
        yield
    except Py4JJavaError as error:
        thrown = error.java_exception
        said = (str(thrown.getMessage() or "").strip().splitlines() or [""])[0]
        raise PipelineError(f"{url}: {said or thrown.getClass().getSimpleName()}") from None
    except (Py4JError, OSError) as error:
        raise PipelineError(f"{url}: the Java process that reads it has ended: {error}") from None


@functools.cache
def _gateway() -> Any:
    """Start the Java process; it ends with this one, whose end closes its standard input."""
    try:
        import pyspark  # noqa: PLC0415  an optional package
        from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway, launch_gateway  # noqa: PLC0415
        from py4j.protocol import get_return_value, is_error  # noqa: PLC0415
    except ImportError as error:
        raise PipelineError("state on HDFS needs Spark's jars: pip install 'headrace[spark]'") from error
    try:
        java = find_java("state on HDFS")
    except NoJava as error:
        raise PipelineError(str(error)) from error
    jars = Path(pyspark.__file__).parent / "jars"
    configuration = os.environ.get("HADOOP_CONF_DIR", "")
    port, token = launch_gateway(
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        classpath=os.pathsep.join(filter(None, (configuration, f"{jars}/*"))),
        javaopts=list(_JVM_OPTIONS),
        java_path=str(java),
        die_on_exit=True,
        enable_auth=True,
    )

    class JavaClient(GatewayClient):  # type: ignore[misc]
        """Raises exceptions of Java as they are.

        PySpark replaces the function by which py4j does so, for all gateways, by one that asks Spark's
        process for the trace of the exception, which that process does not know.
        """

        def send_command(self, command: str, retry: bool = True, binary: bool = False) -> Any:
            answer = super().send_command(command, retry, binary)
            if not binary and is_error(answer)[0]:
                get_return_value(answer, self)
            return answer

    parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    return JavaGateway(JavaClient(gateway_parameters=parameters), gateway_parameters=parameters)
