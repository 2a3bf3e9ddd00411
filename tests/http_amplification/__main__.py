"""`make amplification-http`: search every HTTP route for requests that cost more than their bytes.

Every attack is sent to a gateway in a process of its own. Those that exceed a bound of `measuring` are
findings, and make the exit status 1; the costliest are listed in any case.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from http_amplification.measuring import HEAD, Cost, Served
from http_amplification.search import attacks
from support.process import UpProcess

_BY: dict[str, Callable[[Cost], float]] = {
    "CPU": lambda cost: cost.cpu_s,
    "event loop": lambda cost: cost.held_s,
    "memory": lambda cost: cost.grown_bytes,
}


def say(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="make amplification-http ARGS=")
    parser.add_argument("--size", type=int, default=1_000_000, help="bytes of a body")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="attacks with this in their name")
    parser.add_argument("--top", type=int, default=10, help="how many of the costliest are listed")
    given = parser.parse_args()
    costs = _searched(given.size, given.seed, given.only)
    for name, key in _BY.items():
        say(f"\nthe most {name}\n{HEAD}")
        for cost in sorted(costs, key=key, reverse=True)[: given.top]:
            say(cost)
    found = [cost for cost in costs if cost.findings()]
    say(f"\n{len(costs)} attacks, {len(found)} findings")
    for cost in found:
        say(f"{', '.join(cost.findings())}\n{cost}")
    return 1 if found else 0


def _searched(size: int, seed: int, only: str) -> list[Cost]:
    costs: list[Cost] = []
    path = str(Path(__file__).parents[1])
    with (
        tempfile.TemporaryDirectory() as directory,
        UpProcess(Path(directory)) as up,
        Served(up.bootstrap, path) as served,
    ):
        for attack in attacks(served, size, seed, lambda label: only in label):
            costs.append(served.cost(attack))
            if costs[-1].findings():
                say(f"{', '.join(costs[-1].findings())}: {costs[-1]}")
    return costs


if __name__ == "__main__":
    sys.exit(main())
