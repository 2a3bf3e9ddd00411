"""Pipelines beside a registry: schemas that are registered, records that begin with an id, and a gateway."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.serialization import MessageField, SerializationContext, Serializer
from pyspark.sql import SparkSession

from headrace.client.schemas.registry import Reference, Schema
from headrace.client.schemas.registry import RegistryClient as Client
from headrace.gateway.serving import serve_in_thread
from headrace.pipeline.runner import Runner
from ports import free_port
from spark.plant import Plant
from wire.confluent import read

PATIENCE_S: Final = 240


class Gateway:
    """A registry that can be stopped, and started again where it was."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._port = free_port()
        self._running = ExitStack()
        self.url = f"http://127.0.0.1:{self._port}"
        self.client = SchemaRegistryClient({"url": self.url})

    def start(self) -> None:
        self._running.enter_context(serve_in_thread(self._bootstrap, port=self._port))

    def stop(self) -> None:
        self._running.close()

    def close(self) -> None:
        self.client.close()
        self.stop()

    def register(self, subject: str, schema: Any, references: Mapping[str, str] | None = None) -> int:
        """Its id; `references` are subjects by the names that an Avro schema uses, in version 1."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        others = (
            Reference(name=name, subject=other, version=1) for name, other in (references or {}).items()
        )
        return Client(self.url).register(subject, Schema(text=text, references=tuple(others))).id


class RegistryPlant(Plant):
    """Runs pipelines that decode by a registry."""

    def __init__(self, spark: SparkSession, bootstrap: str, root: Path, gateway: Gateway) -> None:
        super().__init__(spark, bootstrap, root)
        self.gateway = gateway

    @contextmanager
    def beside(self, runner: Runner, act: Any) -> Iterator[None]:
        """Act in a thread while the pipeline runs, which is stopped after that."""
        failed: list[BaseException] = []

        def acting() -> None:
            try:
                act()
            except BaseException as error:  # noqa: BLE001  it is raised where the test is
                failed.append(error)
            finally:
                runner.stop()

        thread = threading.Thread(target=acting)
        thread.start()
        try:
            yield
        finally:
            runner.stop()
            thread.join()
        if failed:
            raise failed[0]

    def reasons(self, topic: str) -> list[str]:
        """Of the dead letters of a topic."""
        letters = read(self.bootstrap, f"{topic}.dead-letters")
        return [dict(each.headers())["reason"].decode() for each in letters]


def serialized(serializer: Serializer, topic: str, value: Any, part: str = MessageField.VALUE) -> bytes:
    found = serializer(value, SerializationContext(topic, part))
    assert isinstance(found, bytes)
    return found
