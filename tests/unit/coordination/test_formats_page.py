"""docs/formats.md promises the bytes of the coordinator's files; these are they."""

import re
import secrets
from pathlib import Path

import pytest

from headrace.coordination.embedded.acl import OPEN
from headrace.coordination.embedded.journal import Journal
from headrace.coordination.embedded.txns import CreateNode, Entry, OpenSession, Txn, encode_entry

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"
START_MS = 1_700_000_000_000
SALT = 0x01020304


def documented_blocks() -> list[bytes]:
    section = PAGE.read_text("utf-8").partition("## A worked example of the coordinator's files")[2]
    blocks = re.findall(r"```hex\n(.*?)```", section, re.DOTALL)
    return [bytes.fromhex("".join(line.split("  ")[0] for line in block.splitlines())) for block in blocks]


def test_the_worked_example_is_what_the_code_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "randbits", lambda _bits: SALT)
    journal = Journal(tmp_path, tick_ms=2000)
    history: list[Txn] = [OpenSession(7, 10_000, bytes(range(16))), CreateNode("/a", b"hi", OPEN, 7)]
    for number, txn in enumerate(history):
        entry = Entry(number + 1, START_MS + number, txn)
        journal.state.apply(entry)
        journal.append([encode_entry(entry)])
    image = journal.state.image()
    journal.roll(image.zxid)
    journal.write_snapshot(image)
    journal.close()
    log, snapshot_start, snapshot_end = documented_blocks()
    snapshot = (tmp_path / f"{2:020d}.snapshot").read_bytes()

    assert (tmp_path / f"{0:020d}.txnlog").read_bytes() == log
    assert (snapshot[: len(snapshot_start)], snapshot[-len(snapshot_end) :]) == (snapshot_start, snapshot_end)
