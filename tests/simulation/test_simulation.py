"""Seeds in CI: thousands of stories end well, each the same every time, and a broken rule is noticed.

They are played by processes of their own: what the stories leave behind ends with them.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from simulation.mutations import MUTATIONS

TESTS = Path(__file__).parents[1]
SEEDS = 2000
SEEDS_UNTIL_NOTICED = 300


def simulate(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "simulation", *arguments]
    return subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=False)


def test_thousands_of_stories_end_well() -> None:
    played = simulate("--seeds", str(SEEDS))

    assert played.returncode == 0, played.stdout + played.stderr
    assert f"{SEEDS} seeds from 0 on" in played.stdout


@pytest.mark.parametrize("seed", ["3", "17", "1371"])
def test_a_seed_tells_the_same_story_every_time(seed: str) -> None:
    first, second = (simulate("--seed", seed) for _ in range(2))

    assert first.stdout.count("\n") > 100, first.stdout + first.stderr
    assert first.stdout == second.stdout


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_rule_that_is_not_in_force_is_noticed(mutation: str) -> None:
    played = simulate("--mutation", mutation, "--seeds", str(SEEDS_UNTIL_NOTICED))

    assert played.returncode == 1, played.stdout + played.stderr
    assert f"ARGS='--mutation {mutation}'" in played.stdout
