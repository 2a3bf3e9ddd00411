"""README.md and docs/start.md, run from top to bottom as a reader would."""

from pathlib import Path

import pytest

from pages.__main__ import PAGES, ROOT, why_not
from pages.markdown import blocks
from pages.reader import Reader


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    "spark", [False, pytest.param(True, marks=pytest.mark.long)], ids=["no-spark", "spark"]
)
def test_every_block_does_what_its_page_says(tmp_path: Path, page: str, *, spark: bool) -> None:
    with Reader(tmp_path) as reader:
        for block in blocks(page, (ROOT / page).read_text("utf-8")):
            if not why_not(block, spark=spark):
                reader.run(block)
        reader.finish()


@pytest.mark.parametrize("page", PAGES)
def test_few_blocks_are_left_out_and_each_has_a_reason(page: str) -> None:
    found = blocks(page, (ROOT / page).read_text("utf-8"))

    left_out = [each for each in found if each.not_run]
    assert len(found) > 10
    assert len(left_out) <= 2
    assert all(len(each.not_run) > 20 for each in left_out)
