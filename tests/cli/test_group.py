"""`headrace group` list, describe and delete against a real broker."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from cli.command import Command
from cli.members import Running, committed, describe, settled, wait_until

PROTOCOLS = ["classic", "consumer"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_from_its_first_record_to_its_end(headrace: Command, protocol: str) -> None:
    group, topic = f"life-{protocol}", f"life-of-{protocol}"
    headrace.ok("topic", "create", topic, "--partitions", "2")
    headrace.ok("produce", topic, *"abc", "--partition", "0")
    headrace.ok("produce", topic, *"defg", "--partition", "1")
    printed = headrace.ok(
        *("consume", topic, "--group", group, "--group-protocol", protocol),
        *("--from-beginning", "--max-messages", "7"),
    )
    assert sorted(printed.text.split()) == list("abcdefg")
    assert [group, "Empty", protocol, "0"] in [
        line.split() for line in headrace.ok("group", "list").text.splitlines()
    ]
    headrace.ok("produce", topic, "h", "i", "--partition", "1")
    lines = headrace.ok("group", "describe", group).text.splitlines()
    assert lines[0] == f"{group}: Empty, no members"
    assert lines[1] == f"type {protocol}, coordinator 1 at {headrace.bootstrap}"
    assert [line.split() for line in lines[3:6]] == [
        ["topic", "partition", "committed", "log", "end", "lag"],
        [topic, "0", "3", "3", "0"],
        [topic, "1", "4", "6", "2"],
    ]
    assert lines[-1] == "total lag 2"
    assert headrace.ok("group", "delete", group, "--yes").text == f"deleted {group}\n"
    assert headrace("group", "describe", group).complaint == f"there is no group {group}"
    assert group not in [each["name"] for each in headrace.ok("group", "list", "--json").json]


@pytest.mark.parametrize("protocol", ["consumer", pytest.param("classic", marks=pytest.mark.long)])
def test_members_beyond_the_partitions_are_idle_and_described_so(
    headrace: Command, tmp_path: Path, protocol: str
) -> None:
    group, topic = f"idle-{protocol}", f"idlers-{protocol}"
    headrace.ok("topic", "create", topic, "--partitions", "1")
    headrace.ok("produce", topic, "x")
    with ExitStack() as stack:
        for number in range(3):
            arguments = (topic, "--group", group, "--group-protocol", protocol, "--from-beginning")
            stack.enter_context(Running(headrace, tmp_path / str(number), *arguments))
        found = settled(headrace, group, members=3)
        assert (found["type"], found["idle_members"]) == (protocol, 2)
        assert found["assignor"] == ("range" if protocol == "classic" else "uniform")
        assert sorted(len(each["assignment"]) for each in found["members"]) == [0, 0, 1]
        text = headrace.ok("group", "describe", group).text
        assert "2 of 3 members are idle: there are more members than partitions" in text
        assert sum(line.startswith("(idle)") for line in text.splitlines()) == 2
        members = headrace.ok("group", "describe", group, "--members").text
        assert sum(line.endswith("(idle)") for line in members.splitlines()) == 2
        assert sum(line.endswith(f"{topic}:0") for line in members.splitlines()) == 1
        refused = headrace("group", "delete", group, "--yes")
        assert refused.status == 1
        assert refused.complaint == (
            f"group {group} has 3 members: stop its consumers first "
            f"(`headrace group describe {group} --members` lists them)"
        )


def test_the_list_can_be_filtered_by_state_and_type(headrace: Command, tmp_path: Path) -> None:
    headrace.ok("topic", "create", "filtered")
    for name, protocol in [("old", "classic"), ("new", "consumer")]:
        headrace.ok(
            "consume", "filtered", "--exit-at-end", "--group", f"f-{name}", "--group-protocol", protocol
        )
    with Running(headrace, tmp_path / "out", "filtered", "--group", "f-busy"):
        settled(headrace, "f-busy", members=1)

        def names(*filters: str) -> list[str]:
            listed = headrace.ok("group", "list", "--json", *filters).json
            return [each["name"] for each in listed if each["name"].startswith("f-")]

        assert names() == ["f-busy", "f-new", "f-old"]
        assert names("--state", "stable") == ["f-busy"]
        assert names("--state", "Empty") == ["f-new", "f-old"]
        assert names("--type", "classic") == ["f-busy", "f-old"]
        assert names("--state", "empty", "--type", "consumer") == ["f-new"]
        assert names("--state", "empty", "--state", "stable", "--type", "classic") == ["f-busy", "f-old"]
    assert headrace.ok("group", "list", "--state", "reconciling").text == "no group matches\n"


def test_what_machines_are_told(headrace: Command, tmp_path: Path) -> None:
    headrace.ok("topic", "create", "machine", "--partitions", "2")
    headrace.ok("produce", "machine", "x", "y", "--partition", "1")
    arguments = ("machine", "--group", "machines", "--instance-id", "till-1", "--from-beginning")
    with Running(headrace, tmp_path / "out", *arguments):
        wait_until(lambda: describe(headrace, "machines") is not None)
        wait_until(lambda: committed(headrace, "machines") == {("machine", 0): 0, ("machine", 1): 2})
        found = settled(headrace, "machines", members=1)
        listed = headrace.ok("group", "list", "--json").json
    host, _, port = headrace.bootstrap.partition(":")
    (described,) = found.pop("members")
    assert found == {
        "name": "machines",
        "state": "Stable",
        "type": "classic",
        "assignor": "range",
        "coordinator": {"id": 1, "host": host, "port": int(port)},
        "idle_members": 0,
        "partitions": [
            {
                "topic": "machine",
                "partition": partition,
                "committed": offset,
                "log_end": offset,
                "lag": 0,
                "member_id": described["member_id"],
            }
            for partition, offset in [(0, 0), (1, 2)]
        ],
        "total_lag": 0,
    }
    assert described | {"member_id": None} == {
        "member_id": None,
        "instance_id": "till-1",
        "client_id": "headrace",
        "host": "127.0.0.1",
        "assignment": [{"topic": "machine", "partitions": [0, 1]}],
    }
    assert {"name": "machines", "state": "Stable", "type": "classic", "members": 1} in listed


def test_several_groups_are_described_one_under_the_other(headrace: Command) -> None:
    headrace.ok("produce", "shared", "x")
    for group in ("first", "second"):
        headrace.ok("consume", "shared", "--group", group, "--exit-at-end")
    text = headrace.ok("group", "describe", "first", "second").text
    assert [line for line in text.splitlines() if line.endswith("no members")] == [
        "first: Empty, no members",
        "second: Empty, no members",
    ]
    assert text.count("total lag 0") == 2
    assert [each["name"] for each in headrace.ok("group", "describe", "second", "first", "--json").json] == [
        "second",
        "first",
    ]
    assert headrace("group", "describe", "first", "third").complaint == "there is no group third"


def test_deleting_is_asked_about(headrace: Command) -> None:
    headrace.ok("produce", "asked", "x")
    headrace.ok("consume", "asked", "--group", "asked", "--exit-at-end")
    unasked = headrace("group", "delete", "asked")
    assert (unasked.status, unasked.complaint.split(".")[0]) == (
        2,
        "Confirmation needs a terminal: give --yes to delete asked",
    )
    status, said = headrace.answered("n", "group", "delete", "asked")
    assert status == 1, said
    assert said.endswith("headrace: nothing was deleted\n")
    assert describe(headrace, "asked") is not None
    status, said = headrace.answered("y", "group", "delete", "asked")
    assert status == 0, said
    assert "Delete asked and the offsets committed there?" in said
    assert describe(headrace, "asked") is None


def test_of_several_groups_none_is_deleted_if_one_cannot_be(headrace: Command) -> None:
    headrace.ok("produce", "together", "x")
    for group in ("together-1", "together-2"):
        headrace.ok("consume", "together", "--group", group, "--exit-at-end")
    refused = headrace("group", "delete", "together-1", "together-3", "--yes")
    assert refused.complaint == "there is no group together-3"
    deleted = headrace.ok(
        "group", "delete", "together-1", "together-2", "together-3", "--yes", "--if-exists", "--json"
    )
    assert deleted.json == {"deleted": ["together-1", "together-2"]}
    nothing = headrace.ok("group", "delete", "together-1", "--yes", "--if-exists")
    assert nothing.text == "deleted nothing\n"


@pytest.mark.parametrize(
    "arguments",
    [
        "group describe nowhere",
        "group describe nowhere --members",
        "group describe nowhere --json",
        "group delete nowhere --yes",
        "group reset-offsets nowhere --all-topics --to-earliest",
    ],
)
def test_an_unknown_group_is_one_sentence_and_status_1(headrace: Command, arguments: str) -> None:
    refused = headrace(*arguments.split())
    assert (refused.status, refused.complaint) == (1, "there is no group nowhere")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("group describe", "Missing argument 'NAME...'"),
        ("group list --state quiet", "'quiet' is not one of 'empty', 'stable'"),
        ("group list --type share", "'share' is not one of 'classic', 'consumer'"),
        ("group reset-offsets g --to-latest", "Give --topic or --all-topics"),
        ("group reset-offsets g --to-latest --topic t --all-topics", "Give --topic or --all-topics"),
        ("group reset-offsets g --all-topics", "Give one of --to-earliest, --to-latest, --to-offset"),
        ("group reset-offsets g --all-topics --to-latest --to-offset 0", "Give one of --to-earliest"),
        ("group reset-offsets g --topic t: --to-latest", "--topic t:: expected a topic"),
        ("group reset-offsets g --topic t --to-datetime soon", "--to-datetime soon: expected a time such as"),
        ("group reset-offsets g --topic t --by-duration 1h", "--by-duration 1h: expected a duration such as"),
    ],
)
def test_a_misuse_is_one_line_and_status_2(headrace: Command, arguments: str, sentence: str) -> None:
    refused = headrace(*arguments.split())
    assert refused.status == 2, refused
    assert sentence in refused.complaint


@pytest.mark.parametrize(("arguments", "heading"), [([], "Records"), (["group"], "Commands")])
def test_a_command_without_a_verb_shows_what_there_is(
    headrace: Command, arguments: list[str], heading: str
) -> None:
    shown = headrace(*arguments)
    assert (shown.status, shown.out) == (2, b"")
    assert shown.err.startswith(f"Usage: {' '.join(['headrace', *arguments])} [OPTIONS] COMMAND")
    assert f"\n\n{heading}:\n" in shown.err
