"""A short, repeatable run of every fuzzing target; `make fuzz` searches for longer, from other seeds."""

import os
from pathlib import Path

import pytest

from fuzzing.coverage import Coverage, TooMuchWork
from fuzzing.loop import check, fuzz
from fuzzing.targets import TARGETS, Target

EXECUTIONS = 1000 * int(os.environ.get("HEADRACE_EXAMPLES", "1"))
REGRESSIONS = sorted((Path(__file__).parents[1] / "fuzzing" / "regressions").glob("*.bin"))


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_no_input_surprises_a_parser(name: str) -> None:
    report = fuzz(TARGETS[name], executions=EXECUTIONS)

    assert report.finding is None, report.finding
    assert report.edges > 10


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_what_was_found_once_stays_fixed(path: Path) -> None:
    name = path.stem.rpartition("-")[0]
    finding = check(TARGETS[name], path.read_bytes())

    assert finding is None, finding


# -- the fuzzer itself -----------------------------------------------------------------------------


def test_coverage_leads_the_search_through_code_that_is_compiled_at_run_time() -> None:
    made: dict[str, object] = {}
    lines = [f"{' ' * (n + 1)}if data[{n}:{n + 1}] == {bytes([65 + n])!r}:" for n in range(4)]
    source = "\n".join(["def climb(data):", *lines, f"{' ' * 6}raise OverflowError"])
    exec(compile(source, "<climb>", "exec"), made)
    climb = made["climb"]
    assert callable(climb)
    report = fuzz(Target("climb", climb, lambda: [b"...."]), executions=100_000)

    assert report.finding is not None
    assert report.finding.data.startswith(b"ABCD")


def test_work_out_of_proportion_is_a_finding() -> None:
    made: dict[str, object] = {}
    exec(compile("def loop(data):\n while True:\n  pass\n", "<loop>", "exec"), made)
    loop = made["loop"]
    assert callable(loop)
    with pytest.raises(TooMuchWork):
        Coverage().run(loop, b"", 1000)
    report = fuzz(Target("loop", loop, lambda: [b""]), executions=1)
    assert isinstance(report.finding and report.finding.error, TooMuchWork)
