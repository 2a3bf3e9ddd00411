"""An attacker in a process of its own, with the lowest priority and an end."""

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Final

from attacks.attackers import Attacker
from attacks.target import Target

START_S: Final = 30.0  # for Python to start and import
END_S: Final = 60.0  # for the attacker to report after its time is over
LOWEST: Final = 19


class Report:
    """What the attacker did; known when the attack is over."""

    text = ""


@contextmanager
def under_attack(attacker: Attacker, target: Target, seconds: float) -> Iterator[Report]:
    """Run the attacker for that long; the body begins when it begins. RuntimeError if it fails."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    spawned = multiprocessing.get_context("spawn").Process(
        target=_attack, args=(attacker, target, seconds, theirs), daemon=True
    )
    spawned.start()
    theirs.close()
    report = Report()
    try:
        _receive(ours, START_S)
        yield report
        report.text = _receive(ours, END_S)
    finally:
        spawned.kill()
        spawned.join()


def _receive(connection: Connection, timeout_s: float) -> str:
    if not connection.poll(timeout_s):
        raise RuntimeError(f"the attacker said nothing for {timeout_s:.0f} s")
    try:
        return str(connection.recv())
    except EOFError:
        raise RuntimeError("the attacker failed: its error is above") from None


def _attack(attacker: Attacker, target: Target, seconds: float, parent: Connection) -> None:
    os.nice(LOWEST)
    parent.send("ready")
    parent.send(attacker(target, seconds))
