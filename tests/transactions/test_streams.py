"""Kafka Streams counts words exactly once, on three brokers, whoever is killed."""

import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Final

import pytest

from headrace import Admin
from transactions.brokers import BROKERS, Brokers
from transactions.committed import CommittedReader, committed_reader
from transactions.coordinators import busy_coordinator
from transactions.java_programs import JavaPrograms
from transactions.word_count import (
    APPLICATION,
    CHANGELOG,
    INPUT,
    INPUT_PARTITIONS,
    OUTPUT,
    OUTPUT_PARTITIONS,
    REPARTITION,
    Lines,
    WordCount,
)
from wire.confluent import read

pytestmark = pytest.mark.long

STEP: Final = 3000  # words between two faults
LINES_AT_ONCE: Final = 40
STUCK_S: Final = 180  # without a new count


class Story:
    """An application that reads all the time while faults happen to it."""

    def __init__(self, brokers: Brokers, reader: CommittedReader) -> None:
        self.brokers = brokers
        self.lines = Lines(brokers.bootstrap)
        self.instances: list[WordCount] = []
        self._reader = reader

    def go_on(self, words: int = STEP) -> None:
        """Write lines until so many more words were counted."""
        target = self._reader.count + words
        self._wait(lambda: self._reader.count >= target, writes=True)

    def finish(self) -> None:
        """Wait until every word that was written was counted."""
        self._wait(lambda: self._reader.count >= self.lines.words.total(), writes=False)

    def _wait(self, is_done: Callable[[], bool], *, writes: bool) -> None:
        seen, since = self._reader.count, time.monotonic()
        while not is_done():
            for instance in self.instances:
                instance.check()
            if writes and self.lines.words.total() < self._reader.count + STEP:
                self.lines.write(LINES_AT_ONCE)
            if self._reader.read() > seen:
                seen, since = self._reader.count, time.monotonic()
            logs = "\n".join(instance.end_of_log() for instance in self.instances)
            assert time.monotonic() < since + STUCK_S, f"no count after {seen} for {STUCK_S} s:\n{logs}"


@pytest.fixture
def story(brokers: Brokers) -> Iterator[Story]:
    brokers.create_topic(INPUT, partitions=INPUT_PARTITIONS)
    brokers.create_topic(OUTPUT, partitions=OUTPUT_PARTITIONS)
    with committed_reader(brokers.bootstrap, OUTPUT, OUTPUT_PARTITIONS) as reader:
        story = Story(brokers, reader)
        try:
            yield story
        finally:
            for instance in story.instances:
                instance.kill()


def start(story: Story, programs: JavaPrograms, root: Path, name: str, *, threads: int = 2) -> WordCount:
    instance = WordCount(programs, story.brokers.bootstrap, root, name, threads=threads)
    instance.start()
    story.instances.append(instance)
    return instance


def test_words_are_counted_exactly_once(story: Story, programs: JavaPrograms, tmp_path: Path) -> None:
    brokers = story.brokers
    first, second = (start(story, programs, tmp_path, name) for name in ("first", "second"))
    story.go_on()

    first.kill()  # its transactions time out, and its successor takes over its state directory
    first.start()
    story.go_on()

    broker = busy_coordinator(brokers.bootstrap, APPLICATION)
    brokers.kill(broker)
    story.go_on()
    brokers.restart(broker)
    story.go_on()

    second.kill()
    second.lose_state()  # the state is restored from the changelog
    second.start()
    story.go_on()
    story.finish()
    check_output(story)

    for instance in story.instances:
        instance.stop()
        instance.lose_state()
    story.instances.clear()
    start(story, programs, tmp_path, "third", threads=1)  # restores all of the state, and counts on
    story.go_on()
    story.finish()
    story.instances[0].stop()
    story.instances.clear()
    check_output(story)
    check_internal_topics(story)


def test_words_are_counted_exactly_once_while_brokers_and_instances_are_killed_together(
    story: Story, programs: JavaPrograms, tmp_path: Path
) -> None:
    instances = cycle([start(story, programs, tmp_path, name) for name in ("first", "second")])
    story.go_on()
    for broker in BROKERS:  # so one is the group's coordinator, and each leads partitions of every topic
        instance = next(instances)
        instance.kill()
        story.brokers.kill(broker)
        instance.start()
        story.go_on()
        story.brokers.restart(broker)
    story.finish()
    check_output(story)


def check_output(story: Story) -> None:
    """Check that a new reader gets the counts 1, 2, 3 and so on of every word, each once."""
    found: dict[str, list[bytes]] = {}
    for message in read(
        story.brokers.bootstrap, OUTPUT, partitions=range(OUTPUT_PARTITIONS), isolation_level="read_committed"
    ):
        found.setdefault(message.key().decode(), []).append(message.value())
    expected = story.lines.counts
    wrong = {word: counts for word, counts in found.items() if counts != expected.get(word)}
    assert wrong == {}
    assert found.keys() == expected.keys()


def check_internal_topics(story: Story) -> None:
    """Check the last count of every word in the changelog, and the settings of internal topics."""
    bootstrap = story.brokers.bootstrap
    with Admin(bootstrap) as admin:
        policies = {
            topic: {each.name: each.value for each in admin.topic_configs(topic)}["cleanup.policy"]
            for topic in (CHANGELOG, REPARTITION)
        }
    assert policies == {CHANGELOG: "compact", REPARTITION: "delete"}
    last = {
        message.key().decode(): int.from_bytes(message.value()[-8:], "big")
        for message in read(
            bootstrap, CHANGELOG, partitions=range(INPUT_PARTITIONS), isolation_level="read_committed"
        )
    }
    assert last == dict(story.lines.words)
