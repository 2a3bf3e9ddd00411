"""Kafka Streams' WordCount with exactly_once_v2: instances of it, its input, and what must come out."""

import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, Final

from confluent_kafka import Producer

from transactions.java_programs import JavaPrograms, Process
from wire.confluent import TIMEOUT_S, settings

INPUT, OUTPUT, APPLICATION = "lines", "counts", "word-count"
REPARTITION: Final = f"{APPLICATION}-counts-repartition"
CHANGELOG: Final = f"{APPLICATION}-counts-changelog"
INPUT_PARTITIONS, OUTPUT_PARTITIONS = 6, 3
SETTINGS: Final = (
    "commit.interval.ms=100",
    "consumer.session.timeout.ms=6000",  # the share of an instance that was killed is assigned anew after it
    "consumer.heartbeat.interval.ms=1000",
)


class WordCount(Process):
    """One instance of the application, with a state directory of its own."""

    def __init__(
        self, programs: JavaPrograms, bootstrap: str, root: Path, name: str, *, threads: int = 2
    ) -> None:
        self._state = root / f"{name}-state"
        arguments = [bootstrap, APPLICATION, str(self._state), str(threads), INPUT, OUTPUT, *SETTINGS]
        super().__init__(programs.command("WordCount", *arguments), root / f"{name}.log")

    def lose_state(self) -> None:
        """Delete the state directory of an instance that does not run."""
        assert not self.running
        shutil.rmtree(self._state)


class Lines:
    """The input: lines of words, of which every word is counted here as well."""

    def __init__(self, bootstrap: str) -> None:
        self.words: Counter[str] = Counter()
        self._producer: Any = Producer(settings(bootstrap, enable_idempotence=True))
        self._random = Random(7)
        self._vocabulary = [f"word-{number}" for number in range(40)]

    def write(self, count: int) -> None:
        """Write so many lines of five words, and return when all are acknowledged."""
        for _ in range(count):
            words = self._random.choices(self._vocabulary, k=5)
            self.words.update(words)
            self._producer.produce(INPUT, " ".join(words).encode())
        assert self._producer.flush(TIMEOUT_S * 3) == 0

    @property
    def counts(self) -> dict[str, list[bytes]]:
        """What the output must be: for each word its counts, from 1 to the last."""
        return {
            word: [number.to_bytes(8, "big") for number in range(1, count + 1)]
            for word, count in self.words.items()
        }
