"""README.md and the pages of docs/, run from top to bottom as a reader would."""

import re
from pathlib import Path

import pytest

from pages.__main__ import PAGES, ROOT, why_not
from pages.markdown import Block, blocks
from pages.reader import Reader


def blocks_of(page: str) -> list[Block]:
    return blocks(page, (ROOT / page).read_text("utf-8"))


RUN = [page for page in PAGES if any(not why_not(each, spark=False) for each in blocks_of(page))]
WITH_SPARK = [page for page in PAGES if any(each.needs_spark for each in blocks_of(page))]


def run(page: str, directory: Path, *, spark: bool) -> None:
    with Reader(directory) as reader:
        for block in blocks_of(page):
            if not why_not(block, spark=spark):
                reader.run(block)
        reader.finish()


@pytest.mark.parametrize("page", RUN)
def test_every_block_does_what_its_page_says(tmp_path: Path, page: str) -> None:
    run(page, tmp_path, spark=False)


@pytest.mark.long
@pytest.mark.parametrize("page", WITH_SPARK)
def test_every_block_does_what_its_page_says_with_spark(tmp_path: Path, page: str) -> None:
    run(page, tmp_path, spark=True)


@pytest.mark.parametrize("page", PAGES)
def test_a_block_that_is_left_out_has_a_reason(page: str) -> None:
    for block in blocks_of(page):
        if block.not_run:
            assert len(block.not_run) > 20, block.place
            for file in re.findall(r"\btests/[\w/.]+\w", block.not_run):
                assert (ROOT / file).exists(), block.place


def test_most_blocks_are_run() -> None:
    found = [block for page in PAGES for block in blocks_of(page)]

    assert len(found) > 150
    assert sum(bool(each.not_run) for each in found) < len(found) / 3
