"""Every scenario ends as it says, and a rule that is not in force makes one fail."""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from scenarios.language import ScenarioError, parse
from scenarios.stage import COMMANDS, SUBJECTS

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "scenarios.md"
SCENARIOS = sorted(file.stem for file in HERE.glob("*.txt"))
MUTATIONS = {
    "diverged_log": "a_leader_does_not_notice_that_a_log_has_parted",
    "follower_leaves_the_isr": "a_write_is_acknowledged_before_it_is_committed",
    "leader_fails_over": "a_leader_that_is_alive_is_replaced_without_being_asked",
    "majority_in_doubt": "the_last_one_that_lost_power_leads",
    "old_leader_is_fenced": "a_leader_serves_after_its_lease",
    "power_cut_of_all": "the_first_one_in_doubt_leads",
    "refused_connections": "a_broker_that_refuses_connections_counts_as_dead",
    "retry_is_not_written_twice": "a_producer_that_repeats_itself_is_not_noticed",
    "sound_replica_leads": "a_broker_that_lost_power_is_believed",
    "too_few_in_sync": "a_leader_commits_however_few_are_in_sync",
    "unclean_election": "anybody_may_lead",
}


def play(*arguments: str) -> str:
    """Return what a process prints that plays scenarios: killed brokers stay in memory until it ends."""
    command = [sys.executable, "-m", "scenarios", *arguments]
    return subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=False).stdout


@cache
def results() -> dict[str, str]:
    """Return one line about each scenario."""
    lines = play().splitlines()
    return {found[1]: line for line in lines if (found := re.search(r"(\w+)\.txt", line))}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_ends_as_it_says(name: str) -> None:
    assert results()[name].startswith("ok: ")


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_begins_with_a_sentence_about_the_protocol(name: str) -> None:
    first = (HERE / f"{name}.txt").read_text().splitlines()[0]

    assert re.fullmatch(r"# [A-Z].+[.,\w]", first)


@pytest.mark.parametrize(("name", "mutation"), MUTATIONS.items())
def test_a_scenario_fails_without_the_rule_that_it_shows(name: str, mutation: str) -> None:
    assert play(name, "--mutation", mutation).startswith(f"failed: {HERE / name}.txt:")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("start 1\n\nkil 1", "f.txt:3: 'kil 1' is not a command; expected: start <brokers> | "),
        ("kill one", "f.txt:1: 'kill one' is not a command; expected: kill <brokers>"),
        ("start 1; tick 3", "f.txt:1: 'tick 3' is not a command; expected: tick <duration>"),
        (
            "tick 1s -> isr: 1",
            "f.txt:1: 'isr' is not something that can be expected; expected: isr <partition>",
        ),
        ("tick 1s ->", "f.txt:1: '->' is followed by no expectation"),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_what_is_possible(text: str, problem: str) -> None:
    with pytest.raises(ScenarioError) as error:
        parse("f.txt", text, COMMANDS, SUBJECTS)

    assert str(error.value).startswith(problem)


def test_an_expectation_that_is_not_met_is_reported_with_what_was_found(tmp_path: Path) -> None:
    file = tmp_path / "wrong.txt"
    file.write_text("start 1 2\ntopic t 1 2 -> isr t-0: 1\n")

    assert play(str(file)) == f"failed: {file}:2: isr t-0: expected '1', found '1 2'\n"


def test_the_page_shows_a_scenario_and_lists_every_command_and_expectation() -> None:
    page = PAGE.read_text()

    assert (HERE / "follower_leaves_the_isr.txt").read_text() in page.replace("\n    ", "\n")
    for template in (*COMMANDS.templates, *SUBJECTS.templates):
        assert f"`{template}`" in page
    for name in SCENARIOS:
        assert f"`{name}`" in page
