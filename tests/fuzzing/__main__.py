"""`make fuzz`: every target for a while, from a new seed. A finding is written to a file for the tests."""

import argparse
import hashlib
import logging
import secrets
import sys
from functools import partial
from pathlib import Path

from fuzzing.loop import fuzz
from fuzzing.targets import TARGETS

say = partial(print, flush=True)
REGRESSIONS = Path(__file__).with_name("regressions")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--target", choices=sorted(TARGETS), action="append", help="repeatable; default: all")
    parser.add_argument("--seed", type=int, help="repeats an earlier run")
    arguments = parser.parse_args()
    logging.disable()  # of clients that fail to authenticate
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    say(f"seed {seed}")
    found = 0
    for name in arguments.target or sorted(TARGETS):
        report = fuzz(TARGETS[name], seconds=arguments.seconds, seed=seed)
        say(f"{name}: {report.executions:,} inputs, {report.edges:,} edges, corpus of {len(report.corpus):,}")
        if report.finding is not None:
            found += 1
            digest = hashlib.sha256(report.finding.data).hexdigest()[:12]
            path = REGRESSIONS / f"{name}-{digest}.bin"
            path.write_bytes(report.finding.data)
            say(f"  {report.finding}\n  written to {path}; `pytest tests/property/test_fuzzing.py` runs it")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
