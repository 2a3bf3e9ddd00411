"""Microseconds per message: Headrace beside kio and kafka-python.

    python bench/protocol.py

CPU time, the best of several rounds in which all contenders take turns. A parse starts from the
bytes of a message and ends with its object; a write starts from nothing, so that making the object
counts too. The last two columns are how many times Headrace's time the others take.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from protocol_cases import Contenders, cases

ROUNDS = 7
ROUND_SECONDS = 0.05


def best_of_rounds(contenders: list[Callable[[], Any]]) -> list[float]:
    """The best time of each in microseconds of CPU, all of them measured in turns."""
    best = [float("inf")] * len(contenders)
    loops = [_loops_for(contender) for contender in contenders]
    for _ in range(ROUNDS):
        for index, contender in enumerate(contenders):
            best[index] = min(best[index], _time(contender, loops[index]) / loops[index])
    return [seconds * 1e6 for seconds in best]


def _loops_for(contender: Callable[[], Any]) -> int:
    contender()  # compile, import, fill caches
    loops = 1
    while (seconds := _time(contender, loops)) < ROUND_SECONDS / 4:
        loops *= 4
    return max(1, int(loops * ROUND_SECONDS / seconds))


def _time(contender: Callable[[], Any], loops: int) -> float:
    start = time.process_time()
    for _ in range(loops):
        contender()
    return time.process_time() - start


def show(title: str, contenders: Contenders) -> None:
    ours, kio, kafka_python = best_of_rounds([contenders.headrace, contenders.kio, contenders.kafka_python])
    ratios = f"{kio / ours:6.1f}x {kafka_python / ours:6.1f}x"
    print(f"{title:<42} {ours:9.2f} {kio:9.1f} {kafka_python:9.1f}   {ratios}")


BROKER = ("api", "frame", "headers", "produce", "fetch", "api_versions")
KIO_METADATA = "kio.schema.metadata.v12"
IMPORTS = {
    "headrace: what a broker needs": ", ".join(f"headrace.protocol.{name}" for name in BROKER),
    "headrace: every schema there is": "headrace.protocol.schema.{all}",
    "kio: Metadata v12 alone": f"kio.serial, {KIO_METADATA}.request, {KIO_METADATA}.response",
    "kafka-python: Metadata alone": "kafka.protocol.metadata",
}


def import_times() -> Iterator[tuple[str, float]]:
    """Milliseconds that each import takes in a fresh interpreter, less what an empty one takes."""
    names = "[m.name for m in pkgutil.iter_modules(headrace.protocol.schema.__path__)]"
    every = (
        "import pkgutil, importlib, headrace.protocol.schema\n"
        f"for name in {names}: importlib.import_module('headrace.protocol.schema.' + name)"
    )
    empty = _fresh_interpreter("pass")
    for title, modules in IMPORTS.items():
        program = every if "{all}" in modules else f"import {modules}"
        yield title, _fresh_interpreter(program) - empty


def _fresh_interpreter(program: str) -> float:
    timed = f"import time\nstart = time.process_time()\n{program}\nprint(time.process_time() - start)"
    runs = (
        subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True)
        for _ in range(ROUNDS)
    )
    return min(float(run.stdout) for run in runs) * 1000


def main() -> None:
    print(f"{'us per message':<42} {'headrace':>9} {'kio':>9} {'kafka-py':>9}   {'kio':>7} {'kafka-py':>8}")
    for title, contenders in cases():
        show(title, contenders)
    print(f"\n{'ms to import':<42}")
    for title, milliseconds in import_times():
        print(f"{title:<42} {milliseconds:9.1f}")


if __name__ == "__main__":
    main()
