"""Drivers that merge change events, each killed at another point of a batch's commits."""

import dataclasses
import json
import random
import signal
from pathlib import Path
from typing import Final

import pytest

from spark.change_events import cut, disordered, final_rows, history_of_source
from spark.killed_drivers import TIMEOUT_S, driver_process
from spark.merged_tables import FORMATS

# A batch with deletions has two commits: its tombstones, and then the table.
KILLS: Final = (("0", "before"), ("0", "after"), ("1", "before"), ("1", "after"), ("3", "before"))


def drive(kind: str, root: Path, number: int, commit: str, when: str) -> int:
    name = f"driver-{number}"
    arguments = (kind, str(root), name, commit, when)
    with driver_process("spark.upsert_driver", *arguments, log=root / f"{name}.log") as process:
        return process.wait(TIMEOUT_S)


@pytest.mark.long
@pytest.mark.parametrize("kind", FORMATS)
def test_drivers_killed_between_writing_and_committing_leave_the_table_equal_to_the_source(
    tmp_path: Path, kind: str
) -> None:
    chance = random.Random(17)
    changes = history_of_source(chance, keys=25, changes=300)
    arrived = disordered(chance, changes, distance=60)
    (tmp_path / "feed").mkdir()
    (tmp_path / "table").mkdir()
    for n, batch in enumerate(each for each in cut(chance, arrived, 8) if each):
        lines = [json.dumps(dataclasses.asdict(change)) for change in batch]
        (tmp_path / "feed" / f"{n:06}.json").write_text("\n".join(lines))

    for number, (commit, when) in enumerate(KILLS):
        status = drive(kind, tmp_path, number, commit, when)
        assert status == -signal.SIGKILL, (tmp_path / f"driver-{number}.log").read_text()
    status = drive(kind, tmp_path, len(KILLS), "never", "")
    assert status == 0, (tmp_path / f"driver-{len(KILLS)}.log").read_text()

    assert FORMATS[kind].rows(tmp_path / "table") == final_rows(changes)
