"""Seeds in CI: hundreds of stories end well, each the same every time, and a broken rule is noticed.

They are played by processes of their own: what the stories leave behind ends with them.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SEEDS = 300
SEEDS_UNTIL_NOTICED = 400
REPRESENTATIVE = (  # soon noticed; `make simulate ARGS=--mutations` takes longer, and has them all
    "the_high_watermark_ignores_what_is_proposed",
    "a_leader_commits_however_few_are_in_sync",
    "a_write_is_acknowledged_before_it_is_committed",
    "a_follower_comes_into_sync_without_what_is_older_than_its_leader",
    "a_leader_that_restarts_keeps_its_epoch",
    "the_first_one_in_doubt_leads",
    "the_last_one_that_lost_power_leads",
    "a_broker_that_refuses_connections_counts_as_dead",
    "a_leader_that_is_alive_is_replaced_without_being_asked",
    "a_leader_serves_after_its_lease",
    "a_controller_writes_after_another_was_elected",
    "a_leader_does_not_notice_that_a_log_has_parted",
    "a_producer_that_repeats_itself_is_not_noticed",
    "a_batch_is_accepted_without_its_transaction_coordinator",
    "readers_see_records_of_open_transactions",
)
LATE = "a_coordinator_forgets_what_was_prepared_before_it_was_loaded"  # noticed after many more seeds


def simulate(*arguments: str, hash_seed: int = 0) -> "subprocess.CompletedProcess[str]":
    """Play seeds in a process; with another hash seed than 0 it begins by starting itself anew with that."""
    command = [sys.executable, "-m", "simulation", *arguments]
    environment = os.environ | {"PYTHONHASHSEED": str(hash_seed)}
    return subprocess.run(command, cwd=TESTS, env=environment, capture_output=True, text=True, check=False)


def test_hundreds_of_stories_end_well() -> None:
    played = simulate("--seeds", str(SEEDS))

    assert played.returncode == 0, played.stdout + played.stderr
    assert f"{SEEDS} seeds from 0 on" in played.stdout


@pytest.mark.parametrize("seed", ["3", "22", "17", "1371"])
def test_a_seed_tells_the_same_story_every_time(seed: str) -> None:
    first, second = (simulate("--seed", seed, hash_seed=each) for each in (1, 2))

    assert first.stdout.count("\n") > 100, first.stdout + first.stderr
    assert first.stdout == second.stdout


def test_a_seed_that_fails_is_printed_and_fails_again() -> None:
    mutation = ("--mutation", "a_write_is_acknowledged_before_it_is_committed")

    played = simulate(*mutation)
    seed = re.search(r"^again: make simulate SEED=(\d+)", played.stdout, re.MULTILINE)
    problem = re.search(r"seed \d+: (.+)", played.stdout)
    assert seed is not None, played.stdout + played.stderr
    assert problem is not None

    again = simulate("--seed", seed[1], *mutation)
    assert again.returncode == 1
    assert problem[1] in again.stdout


@pytest.mark.parametrize("mutation", [*REPRESENTATIVE, pytest.param(LATE, marks=pytest.mark.long)])
def test_a_rule_that_is_not_in_force_is_noticed(mutation: str) -> None:
    played = simulate("--mutation", mutation, "--seeds", str(SEEDS_UNTIL_NOTICED))

    assert played.returncode == 1, played.stdout + played.stderr
    assert f"ARGS='--mutation {mutation}'" in played.stdout
