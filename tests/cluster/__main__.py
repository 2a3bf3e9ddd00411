"""The full matrix: every story, with the embedded coordinator and with a real ensemble, as a table.

PYTHONPATH=tests python -m cluster [--only TEXT] [--coordination embedded|zookeeper] [--times N] [--keep DIR]
"""

import argparse
import logging
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from cluster.catalogue import BOTH, MATRIX, Entry
from cluster.stage import Outcome

WIDTH = 58


def main() -> int:
    arguments = _arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, lambda _number, _frame: sys.exit(1))  # leaving no process behind
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    _say(f"{'story':{WIDTH}} {'with':10} {'records':>8} {'pause s':>8} {'took s':>7}  outcome")
    bad = 0
    for _ in range(arguments.times):
        for entry in MATRIX:
            for coordination in entry.coordinations:
                wanted = arguments.only in entry.name and arguments.coordination in {"", coordination}
                bad += wanted and not _row(entry, coordination, arguments.keep)
    return 1 if bad else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cluster", description="Real processes under faults, as a table.")
    parser.add_argument("--only", default="", metavar="TEXT", help="stories with this in their names")
    parser.add_argument("--coordination", default="", choices=("", *BOTH))
    parser.add_argument("--times", type=int, default=1, help="how often to play all of it")
    parser.add_argument("--keep", type=Path, help="keep logs and data of stories that end badly, in here")
    return parser.parse_args()


def _row(entry: Entry, coordination: str, keep: Path | None) -> bool:
    """Play one story and print its line; False if it ended badly."""
    title = f"{entry.name.replace('_', ' '):{WIDTH}} {coordination:10}"
    reason = entry.why_not()
    if reason is not None:
        _say(f"{title} {'':25}  skipped: {reason}")
        return True
    root = Path(tempfile.mkdtemp(prefix="headrace-cluster-"))
    began = time.monotonic()
    try:
        outcome = entry.play(coordination, root)
    except Exception as error:  # noqa: BLE001  the next story is to be played all the same
        outcome = Outcome(0, {}, [*traceback.format_exception(error)])
    took = time.monotonic() - began
    pause = outcome.figures.get("longest pause s", "")
    _say(f"{title} {outcome.records:8} {pause:>8} {took:7.1f}  {_end(outcome)}")
    for problem in outcome.problems:
        _say(f"    {problem}")
    if outcome.problems and keep is not None:
        shutil.copytree(root, keep / f"{entry.name}-{coordination}-{int(time.time())}", symlinks=True)
    shutil.rmtree(root)
    return not outcome.problems


def _end(outcome: Outcome) -> str:
    rest = [f"{name} {value}" for name, value in outcome.figures.items() if name != "longest pause s"]
    return "BAD" if outcome.problems else "; ".join(["well", *rest])


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201  it is what this is for


if __name__ == "__main__":
    sys.exit(main())
