"""Plays scenarios: `make scenarios`; one with every event: `make scenarios ARGS="power_cut --trace"`.

With --mutation NAME one rule of the protocol is not in force (see `simulation/mutations.py`).
"""

import argparse
import os
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path

from scenarios.language import ScenarioError, parse
from scenarios.stage import COMMANDS, SUBJECTS, Stage
from simulation.mutations import MUTATIONS


def main() -> int:
    parser = argparse.ArgumentParser(prog="scenarios", description=__doc__)
    parser.add_argument("scenarios", nargs="*", help="a name such as power_cut, or a file; by default all")
    parser.add_argument("--trace", action="store_true", help="print every event")
    parser.add_argument("--mutation", choices=MUTATIONS, metavar="NAME")
    args = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets would differ from run to run
        os.execve(sys.executable, sys.orig_argv, os.environ | {"PYTHONHASHSEED": "0"})
    warnings.filterwarnings("ignore", "coroutine .* was never awaited")  # cancelled before it began
    here = Path(__file__).parent
    named = [here / f"{name}.txt" if name.isidentifier() else Path(name) for name in args.scenarios]
    files = named or sorted(here.glob("*.txt"))
    results = [play(file, traced=args.trace, mutation=args.mutation) for file in files]
    sys.stdout.flush()
    os._exit(not all(results))  # stages keep processes that were killed: these must not be cleaned up


_kept: list[Stage] = []


def play(file: Path, *, traced: bool, mutation: str | None) -> bool:
    """Play one file and print one line about it; return whether every expectation was met."""
    stage = Stage(traced=traced)
    _kept.append(stage)
    try:
        with nullcontext() if mutation is None else MUTATIONS[mutation]():
            stage.play(str(file), parse(str(file), file.read_text(), COMMANDS, SUBJECTS))
    except ScenarioError as error:
        problem = f"failed: {error}"
    else:
        problem = f"ok: {file}"
    sys.stdout.write("".join(f"{line}\n" for line in [*stage.world.trace, problem]))
    return problem.startswith("ok")


if __name__ == "__main__":
    sys.exit(main())
