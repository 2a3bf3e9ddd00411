"""Runs the stories about groups on Apache Kafka instead: they ask for what Kafka does, and here is the proof.

PYTHONPATH=tests .venv/bin/pytest -p wire.group_stories.on_kafka tests/wire/test_groups_confluent.py

A plugin that puts Kafka where the fixtures expect a broker of ours. It starts in six seconds, not in a third
of one, and there is one Kafka per file and process: leave out `-n`.
"""

from collections.abc import Mapping
from pathlib import Path

import wire.process
from compat.kafka_tools.java import find_kafka
from compat.kafka_tools.server import KafkaServer


class KafkaBroker(KafkaServer):
    """Apache Kafka with what the tests of this directory use of `BrokerProcess`."""

    def __init__(self, root: Path, settings: Mapping[str, str] | None = None) -> None:
        root.mkdir(parents=True, exist_ok=True)
        super().__init__(find_kafka(), root, settings)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def complaints(self) -> list[str]:
        return []


wire.process.BrokerProcess = KafkaBroker  # type: ignore[misc, assignment]
