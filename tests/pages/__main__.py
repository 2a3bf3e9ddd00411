"""Runs pages block by block: `make docs-run`; with Spark: `make docs-run ARGS=--spark`."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from pages.markdown import Block, blocks
from pages.reader import BlockFailed, Reader

ROOT = Path(__file__).parents[2]
GENERATED = {"apis.md", "cli.md", "config.md"}
PAGES = (
    "README.md",
    *sorted(f"docs/{each.name}" for each in (ROOT / "docs").glob("*.md") if each.name not in GENERATED),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="pages", description=__doc__)
    parser.add_argument("pages", nargs="*", default=PAGES, help="by default README.md and all of docs/")
    parser.add_argument("--spark", action="store_true", help="run the blocks that need Spark, too")
    args = parser.parse_args()
    played = {page: play(page, spark=args.spark) for page in args.pages}
    return int(not all(played.values()))


def play(page: str, *, spark: bool) -> bool:
    """Run a page and print a line about each block; return whether all do what the page says."""
    with tempfile.TemporaryDirectory(prefix="headrace-page-") as directory, Reader(Path(directory)) as reader:
        for block in blocks(page, (ROOT / page).read_text("utf-8")):
            why = why_not(block, spark=spark)
            if why:
                say(f"skip   {block.place}: {why}")
                continue
            began = time.monotonic()
            try:
                reader.run(block)
            except BlockFailed as failed:
                say(f"FAILED {failed}")
                return False
            say(f"ok     {block.place}: {time.monotonic() - began:.1f} s")
        reader.finish()
    return True


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def why_not(block: Block, *, spark: bool) -> str:
    """Return why a block is not run; empty if it is."""
    return block.not_run or ("" if spark or not block.needs_spark else "it needs Spark: --spark")


if __name__ == "__main__":
    sys.exit(main())
