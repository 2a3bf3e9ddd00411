"""`headrace group reset-offsets` against a real broker: every option, dry and executed."""

import json
import time
from pathlib import Path

import pytest

from cli.command import Command
from cli.members import Running, committed, settled

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def now_ms() -> int:
    return int(time.time() * 1000)


def prepare(headrace: Command, name: str, now_ms: int) -> None:
    """A topic of two partitions, each with a record an hour for ten hours, of which five are read."""
    headrace.ok("topic", "create", name, "--partitions", "2")
    stamped = [{"value": str(n), "timestamp": now_ms - (10 - n) * HOUR_MS} for n in range(10)]
    lines = "\n".join(map(json.dumps, stamped)).encode()
    for partition in ("0", "1"):
        headrace.ok("produce", name, "--from-json", "--partition", partition, stdin=lines)
    headrace.ok("group", "reset-offsets", name, *_at(name, "--to-offset", "5"), "--create", "--execute")


def _at(topic: str, *where: str) -> list[str]:
    return ["--topic", topic, *where]


def moves(headrace: Command, name: str, *arguments: str) -> list[tuple[int | None, int, str | None]]:
    """Old, new and note of each partition."""
    done = headrace.ok("group", "reset-offsets", name, *arguments, "--json").json
    assert (done["group"], done["executed"]) == (name, "--execute" in arguments)
    return [(each["old"], each["new"], each["note"]) for each in done["partitions"]]


def test_every_way_to_say_where(headrace: Command, now_ms: int) -> None:
    prepare(headrace, "ways", now_ms)
    at_half_past = (now_ms - 3 * HOUR_MS - HOUR_MS // 2) / 1000  # the next record is the seventh, of 3 h ago
    utc = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(at_half_past))
    for arguments, new, note in [
        (["--to-earliest"], 0, None),
        (["--to-latest"], 10, None),
        (["--to-offset", "0"], 0, None),
        (["--to-offset", "7"], 7, None),
        (["--to-offset", "11"], 10, "11 is past the end of the log"),
        (["--shift-by", "2"], 7, None),
        (["--shift-by", "-2"], 3, None),
        (["--shift-by", "-6"], 0, "-1 is before the start of the log"),
        (["--to-datetime", utc], 7, None),
        (["--to-datetime", f"@{now_ms}"], 10, "no record since then"),
        (["--by-duration", "PT3H30M"], 7, None),
        (["--by-duration", "P9999D"], 0, None),
        (["--to-current"], 5, None),
    ]:
        assert moves(headrace, "ways", *_at("ways", *arguments)) == [(5, new, note)] * 2, arguments
    assert committed(headrace, "ways") == {("ways", 0): 5, ("ways", 1): 5}


def test_a_dry_run_changes_nothing_and_says_so(headrace: Command, now_ms: int) -> None:
    prepare(headrace, "dry", now_ms)
    lines = headrace.ok("group", "reset-offsets", "dry", *_at("dry", "--shift-by", "99")).text.splitlines()
    assert [line.split(maxsplit=4) for line in lines[:3]] == [
        ["topic", "partition", "old", "new", "note"],
        ["dry", "0", "5", "10", "104 is past the end of the log"],
        ["dry", "1", "5", "10", "104 is past the end of the log"],
    ]
    assert lines[-1] == "a dry run, nothing was changed: --execute resets 2 partitions of dry"
    assert committed(headrace, "dry") == {("dry", 0): 5, ("dry", 1): 5}


def test_a_group_reads_from_where_it_was_moved_to(headrace: Command, now_ms: int) -> None:
    prepare(headrace, "moved", now_ms)
    arguments = ("group", "reset-offsets", "moved", *_at("moved:1", "--to-offset", "8"), "--execute")
    lines = headrace.ok(*arguments).text.splitlines()
    assert lines[0].split() == ["topic", "partition", "old", "new"]
    assert lines[-1] == "reset 1 partition of moved"
    assert committed(headrace, "moved") == {("moved", 0): 5, ("moved", 1): 8}
    read = headrace.ok("consume", "moved", "--group", "moved", "--exit-at-end", "--format", r"%p:%v\n").text
    assert sorted(read.split()) == ["0:5", "0:6", "0:7", "0:8", "0:9", "1:8", "1:9"]


def test_some_partitions_of_some_topics(headrace: Command, now_ms: int) -> None:
    prepare(headrace, "some", now_ms)
    headrace.ok("produce", "other", "x", "y")
    arguments = ("--topic", "some:1", "--topic", "other", "--to-latest", "--execute", "--json")
    done = headrace.ok("group", "reset-offsets", "some", *arguments).json
    assert [(each["topic"], each["partition"], each["old"], each["new"]) for each in done["partitions"]] == [
        ("other", 0, None, 2),
        ("some", 1, 5, 10),
    ]
    expected = {("some", 0): 5, ("some", 1): 10, ("other", 0): 2}
    assert committed(headrace, "some") == expected
    everything = headrace.ok("group", "reset-offsets", "some", "--all-topics", "--to-earliest", "--json").json
    assert {(each["topic"], each["partition"]) for each in everything["partitions"]} == set(expected)


def test_offsets_from_a_file(headrace: Command, now_ms: int, tmp_path: Path) -> None:
    prepare(headrace, "filed", now_ms)
    file = tmp_path / "offsets.csv"
    file.write_text("filed,1,2\nfiled,0,77\n")
    assert moves(headrace, "filed", "--from-file", str(file), "--execute") == [
        (5, 10, "77 is past the end of the log"),
        (5, 2, None),
    ]
    assert committed(headrace, "filed") == {("filed", 0): 10, ("filed", 1): 2}
    refused = headrace("group", "reset-offsets", "filed", "--from-file", str(file), "--all-topics")
    assert refused.status == 2
    assert "The file names the partitions" in refused.complaint
    file.write_text("filed;1;2\n")
    broken = headrace("group", "reset-offsets", "filed", "--from-file", str(file))
    assert broken.complaint == "line 1: expected topic,partition,offset such as orders,0,1200"


def test_a_group_can_be_made_by_its_offsets(headrace: Command) -> None:
    headrace.ok("produce", "made", "x", "y", "z")
    refused = headrace("group", "reset-offsets", "made", *_at("made", "--to-offset", "1"), "--execute")
    assert (refused.status, refused.complaint) == (1, "there is no group made")
    assert moves(headrace, "made", *_at("made", "--to-offset", "1"), "--create", "--execute") == [
        (None, 1, None)
    ]
    assert headrace.ok("consume", "made", "--group", "made", "--exit-at-end").text == "y\nz\n"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_is_not_moved(headrace: Command, tmp_path: Path, protocol: str) -> None:
    name = f"active-{protocol}"
    headrace.ok("produce", name, "x")
    arguments = (name, "--group", name, "--group-protocol", protocol, "--from-beginning")
    with Running(headrace, tmp_path / "out", *arguments) as member:
        member.wait_for(1)
        settled(headrace, name, members=1)
        for execute in ([], ["--execute"]):
            refused = headrace("group", "reset-offsets", name, "--all-topics", "--to-earliest", *execute)
            assert refused.status == 1
            assert refused.complaint == (
                f"group {name} has 1 member: stop its consumers first "
                f"(`headrace group describe {name} --members` lists them)"
            )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--topic nothing-here --to-latest", "there is no topic nothing-here"),
        ("--topic refused:0,7 --to-latest", "refused has no partition 7, only 0 to 1"),
        ("--topic unread --shift-by 1", "unread-0: nothing is committed that could be shifted"),
    ],
)
def test_a_refusal_is_one_sentence(headrace: Command, now_ms: int, arguments: str, sentence: str) -> None:
    if headrace("topic", "create", "unread").status == 0:
        prepare(headrace, "refused", now_ms)
    refused = headrace("group", "reset-offsets", "refused", *arguments.split(), "--execute")
    assert (refused.status, refused.complaint) == (1, sentence)
    assert committed(headrace, "refused") == {("refused", 0): 5, ("refused", 1): 5}
