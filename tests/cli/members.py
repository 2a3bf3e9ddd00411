"""`headrace consume --group` as processes that run while a test looks at their group."""

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cli.command import TIMEOUT_S, Command


class Running:
    """A member of a group, its output in a file. Leaving the `with` block kills it if it still runs."""

    def __init__(self, headrace: Command, output: Path, *arguments: str) -> None:
        self._output = output
        with output.open("ab") as out:
            self._process = subprocess.Popen(
                headrace.arguments("consume", *arguments),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                env=headrace.environment,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def lines(self) -> list[str]:
        return self._output.read_text().splitlines()

    def wait_for(self, count: int) -> list[str]:
        """What was printed, once there are so many lines of it."""
        wait_until(lambda: len(self.lines()) >= count, lambda: (self._process.poll(), self.lines()))
        return self.lines()

    def stop(self, number: signal.Signals) -> int:
        """Send a signal, and return the exit status."""
        self._process.send_signal(number)
        return self.end()

    def end(self) -> int:
        """Wait for it to end of itself; it has complained of nothing."""
        _, said = self._process.communicate(timeout=TIMEOUT_S)
        assert said == b"", said
        return self._process.returncode

    def complaint(self) -> str:
        """Wait for it to fail, and return the one sentence on stderr."""
        _, said = self._process.communicate(timeout=TIMEOUT_S)
        assert self._process.returncode == 1, said
        assert said.count(b"\n") == 1, said
        return said.decode().removeprefix("headrace: ").strip()


def wait_until(condition: Callable[[], bool], explain: Callable[[], object] = lambda: None) -> None:
    """Return once `condition` holds; fail with what `explain` says if it does not in time."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, explain()
        time.sleep(0.05)


def describe(headrace: Command, group: str) -> Any:
    """The group as `--json` has it, or None while there is no such group."""
    result = headrace("group", "describe", group, "--json")
    return result.json[0] if result.status == 0 else None


def settled(headrace: Command, group: str, members: int) -> Any:
    """The group, once it is stable with so many members and every one of them has its place."""
    seen: list[Any] = []

    def is_settled() -> bool:
        seen[:] = [describe(headrace, group)]
        return seen[0] is not None and (seen[0]["state"], len(seen[0]["members"])) == ("Stable", members)

    wait_until(is_settled, lambda: seen)
    return seen[0]


def committed(headrace: Command, group: str) -> dict[tuple[str, int], int | None]:
    """What a group has committed, by topic and partition."""
    found = describe(headrace, group)
    assert found is not None, group
    return {(each["topic"], each["partition"]): each["committed"] for each in found["partitions"]}
