"""Apache Kafka's programs that read in groups or look at them, as people type them."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from typing import Any, Final

from compat.kafka_tools.java import KafkaJava
from wire.group_stories.reading import Place

TOOLS: Final = "org.apache.kafka.tools"
TIMEOUT_S: Final = 90


@dataclass(frozen=True, slots=True)
class GroupTools:
    """Each call is a Java of its own, for half a second and more."""

    java: KafkaJava
    bootstrap: str

    def groups(self, *arguments: str) -> str:
        """What `kafka-consumer-groups` prints; most of what goes wrong it prints too, and exits with 0."""
        return self._run(f"{TOOLS}.consumer.group.ConsumerGroupCommand", *arguments)

    def table(self, *arguments: str) -> list[dict[str, str]]:
        """The rows that `kafka-consumer-groups` prints, by column; it may have something to say before."""
        lines = [line for line in self.groups(*arguments).splitlines() if line.strip()]
        header, *rows = dropwhile(lambda line: not re.match("(GROUP|TOPIC) ", line), lines)
        columns = list(re.finditer(r"\S+(?: \(ID\))?", header))
        starts = [column.start() for column in columns]
        edges = list(zip(starts, [*starts[1:], None], strict=True))
        names = [column[0] for column in columns]
        return [
            dict(zip(names, (row[start:end].strip() for start, end in edges), strict=True)) for row in rows
        ]

    def console(self, group: str, count: int, *arguments: str) -> list[str]:
        """The first `count` lines of `kafka-console-consumer --group`."""
        limits = ("--group", group, "--max-messages", str(count), "--timeout-ms", "20000")
        return self._run(f"{TOOLS}.consumer.ConsoleConsumer", *limits, *arguments).splitlines()

    def _run(self, main_class: str, *arguments: str) -> str:
        command = self.java.command(main_class, "--bootstrap-server", self.bootstrap, *arguments)
        run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        assert run.returncode == 0, f"{arguments}: {run.stdout}{run.stderr}"
        return run.stdout


class VerifiableConsumer:
    """`kafka-verifiable-consumer`: tells what happens to it in lines of JSON."""

    def __init__(self, tools: GroupTools, group: str, topic: str, path: Path, *arguments: str) -> None:
        self._output = path.with_suffix(".out")
        self._complaints = path.with_suffix(".err")
        options = ["--bootstrap-server", tools.bootstrap, "--group-id", group, "--topic", topic, "--verbose"]
        command = tools.java.command(f"{TOOLS}.VerifiableConsumer", *options, *arguments)
        with self._output.open("wb") as output, self._complaints.open("wb") as complaints:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=complaints
            )

    def events(self, *names: str) -> list[dict[str, Any]]:
        """What it told so far, of these kinds."""
        lines = self._output.read_text().splitlines(keepends=True)
        told = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in told if event["name"] in names]

    @property
    def owned(self) -> frozenset[Place]:
        """What it has: each event names what was added or taken away."""
        owned: set[Place] = set()
        for event in self.events("partitions_assigned", "partitions_revoked"):
            places = {Place(each["topic"], each["partition"]) for each in event["partitions"]}
            owned = owned | places if event["name"] == "partitions_assigned" else owned - places
        return frozenset(owned)

    @property
    def values(self) -> list[tuple[Place, int]]:
        """What it read: partition and value, a number."""
        return [
            (Place(event["topic"], event["partition"]), int(event["value"]))
            for event in self.events("record_data")
        ]

    def complaints(self) -> str:
        return self._complaints.read_text()

    def close(self) -> None:
        """Have it leave its group and end."""
        self._process.terminate()
        self._process.wait(TIMEOUT_S)
        assert self.events("shutdown_complete"), self.complaints()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def killed_in_the_end(consumers: list[VerifiableConsumer]) -> Iterator[list[VerifiableConsumer]]:
    """A list that grows; who is in it at the end of the block is killed, if still there."""
    try:
        yield consumers
    finally:
        for consumer in consumers:
            consumer.kill()
