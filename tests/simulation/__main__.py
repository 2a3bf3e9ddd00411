"""Plays seeds: `make simulate SEEDS=10000`, or one of them, told in full: `make simulate SEED=17`.

With --mutation NAME a rule that keeps records safe is not in force, and the first seed that notices is named;
with --mutations all of them have their turn, and every one must be noticed.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext

from simulation.mutations import MUTATIONS, OF_TRANSACTIONS
from simulation.players import Outcome, Rules, play, play_all
from simulation.story import has_bank


def main() -> int:
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="one seed, with its whole trace")
    parser.add_argument("--seeds", type=int, default=2000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--banks", action="store_true", help="only those with transactions")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--mutation", choices=MUTATIONS, metavar="NAME", help="; ".join(MUTATIONS))
    parser.add_argument("--mutations", action="store_true", help="all of them, one after another")
    args = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # or sets of names have another order each time
        os.execve(sys.executable, sys.orig_argv, os.environ | {"PYTHONHASHSEED": "0"})
    seeds: Sequence[int] = range(args.first, args.first + args.seeds)
    if args.banks:
        seeds = list(filter(has_bank, seeds))
    if args.mutations:
        return notice_all(seeds, args.jobs)
    if args.seed is not None:
        return tell(args.seed, args.mutation)
    return play_many(seeds, args.jobs) if args.mutation is None else notice(args.mutation, seeds, args.jobs)


def tell(seed: int, mutation: str | None) -> int:
    outcome = play(seed, traced=True, rules=_rules(mutation))
    _print(*outcome.trace, f"seed {seed}: {outcome.problem or 'all went well'}, after {outcome.steps} steps")
    sys.stdout.flush()
    os._exit(outcome.problem is not None)  # what is kept must not be freed


def play_many(seeds: Sequence[int], jobs: int) -> int:
    began, steps, wrong = time.monotonic(), 0, []
    for outcome in play_all(seeds, jobs=jobs):
        steps += outcome.steps
        if outcome.problem is not None:
            wrong.append(outcome.seed)
            _print(*outcome.trace, *_verdict(outcome), "")
    took = time.monotonic() - began
    count, first = len(seeds), seeds[0]
    _print(f"{count} seeds from {first} on, {steps} steps in {took:.1f} s: {len(wrong)} wrong {wrong or ''}")
    return 1 if wrong else 0


def notice_all(seeds: Sequence[int], jobs: int) -> int:
    return sum(notice(mutation, seeds, jobs) == 0 for mutation in MUTATIONS)


def notice(mutation: str, seeds: Sequence[int], jobs: int) -> int:
    """1 if a check fails for some seed, as it should; a program that falls over has noticed nothing.

    What concerns transactions only seeds with transactions can notice: the others are left out.
    """
    if mutation in OF_TRANSACTIONS:
        seeds = list(filter(has_bank, seeds))
    for outcome in play_all(seeds, jobs=jobs, rules=_rules(mutation), one_will_do=True):
        if outcome.is_violation:
            _print(*_verdict(outcome, mutation))
            return 1
    _print(f"{mutation}: {len(seeds)} seeds from {seeds[0]} on, and nobody has noticed")
    return 0


def _rules(mutation: str | None) -> Rules:
    return nullcontext if mutation is None else MUTATIONS[mutation]


def _verdict(outcome: Outcome, mutation: str | None = None) -> tuple[str, str]:
    arguments = "" if mutation is None else f" ARGS='--mutation {mutation}'"
    what = "" if mutation is None else f"{mutation}: "
    return (
        f"{what}seed {outcome.seed}: {outcome.problem}",
        f"again: make simulate SEED={outcome.seed}{arguments}",
    )


def _print(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
