"""docs/formats.md promises bytes; these are they."""

import re
from pathlib import Path

import pytest

from headrace.protocol.records import Record, encode_batch
from headrace.storage.config import LogConfig
from headrace.storage.recovery import open_log

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
START_MS = 1_700_000_000_000


def documented_files() -> dict[str, bytes]:
    """File name to bytes: each hex block belongs to the file named last before it."""
    files = {}
    for name, block in re.findall(
        r"`(\d{20}\.\w+)`[^`]*```hex\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL
    ):
        files[name] = bytes.fromhex("".join(line.split("  ")[0] for line in block.splitlines()))
    return files


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    log = open_log(tmp_path / "orders-0", LogConfig(index_interval_bytes=100), now_ms=lambda: START_MS)
    records = [
        Record(b"a", b"1", [("h", b"x")], START_MS),
        Record(b"b", None, (), START_MS + 1000),
        Record(b"a", b"2", (), START_MS + 2000),
    ]
    for sequence, record in enumerate(records):
        batch = encode_batch([record], producer_id=7, producer_epoch=0, base_sequence=sequence)
        log.append(batch, leader_epoch=4)
    log.close()
    return log.directory


def test_the_worked_example_is_what_the_code_writes(directory: Path) -> None:
    documented = documented_files()

    assert len(documented) == 4
    assert documented == {name: (directory / name).read_bytes() for name in documented}
    assert (directory / "leader-epoch-checkpoint").read_text() == "0\n1\n4 0\n"
