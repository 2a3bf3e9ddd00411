"""Plays seeds: `make simulate SEEDS=1000`, or one of them, told in full: `make simulate SEED=17`."""

import argparse
import os
import sys
import time

from simulation.players import play, play_all


def main() -> int:
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="one seed, with its whole trace")
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    args = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # or sets of names have another order each time
        os.execve(sys.executable, sys.orig_argv, os.environ | {"PYTHONHASHSEED": "0"})
    return tell(args.seed) if args.seed is not None else play_many(args.first, args.seeds, args.jobs)


def tell(seed: int) -> int:
    outcome = play(seed, traced=True)
    _print(*outcome.trace, f"seed {seed}: {outcome.problem or 'all went well'}, after {outcome.steps} steps")
    sys.stdout.flush()
    os._exit(outcome.problem is not None)  # what is kept must not be freed


def play_many(first: int, count: int, jobs: int) -> int:
    began, steps, wrong = time.monotonic(), 0, []
    for outcome in play_all(range(first, first + count), jobs=jobs):
        steps += outcome.steps
        if outcome.problem is not None:
            wrong.append(outcome.seed)
            _print(*outcome.trace, f"seed {outcome.seed}: {outcome.problem}")
            _print(f"again: make simulate SEED={outcome.seed}", "")
    took = time.monotonic() - began
    _print(f"{count} seeds from {first} on, {steps} steps in {took:.1f} s: {len(wrong)} wrong {wrong or ''}")
    return 1 if wrong else 0


def _print(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
