"""`headrace consume --group`: what is printed is committed, nothing else is, and nothing is left out."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from cli.command import TIMEOUT_S, Command
from cli.members import Running, committed, describe, settled, wait_until
from support.process import UpProcess

PROTOCOLS = ["classic", "consumer"]
NEWEST_OFTEN = pytest.mark.parametrize(
    "protocol", ["consumer", pytest.param("classic", marks=pytest.mark.long)]
)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_goes_on_where_it_stopped(headrace: Command, protocol: str) -> None:
    name = f"goes-on-{protocol}"
    headrace.ok("produce", name, *"abcdef")

    def read(*arguments: str) -> str:
        group = ("--group", name, "--group-protocol", protocol)
        return headrace.ok("consume", name, *group, *arguments).text

    assert read("--from-beginning", "--max-messages", "2") == "a\nb\n"
    assert committed(headrace, name) == {(name, 0): 2}
    assert read("--max-messages", "1") == "c\n"
    assert read("--exit-at-end") == "d\ne\nf\n"
    assert read("--exit-at-end", "--from", "beginning") == ""
    headrace.ok("produce", name, "g")
    assert read("--exit-at-end", "--json").startswith(f'{{"topic": "{name}", "partition": 0, "offset": 6')


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_new_group_begins_at_the_end_unless_told(headrace: Command, tmp_path: Path, protocol: str) -> None:
    name = f"at-end-{protocol}"
    headrace.ok("produce", name, "before")
    arguments = (name, "--group", name, "--group-protocol", protocol)
    with Running(headrace, tmp_path / "out", *arguments) as member:
        wait_until(lambda: (describe(headrace, name) or {"partitions": []})["partitions"] != [])
        wait_until(lambda: committed(headrace, name) == {(name, 0): 1}, lambda: committed(headrace, name))
        headrace.ok("produce", name, "after")
        assert member.wait_for(1) == ["after"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_has_a_place_in_partitions_that_were_empty(headrace: Command, protocol: str) -> None:
    name = f"empty-{protocol}"
    headrace.ok("topic", "create", name, "--partitions", "2")
    headrace.ok("produce", name, "a", "--partition", "0")
    arguments = ("consume", name, "--group", name, "--group-protocol", protocol)
    assert headrace.ok(*arguments, "--exit-at-end").text == "a\n"
    assert committed(headrace, name) == {(name, 0): 1, (name, 1): 0}
    headrace.ok("produce", name, "b", "--partition", "1")
    assert describe(headrace, name)["total_lag"] == 1
    assert headrace.ok(*arguments, "--from", "end", "--max-messages", "1").text == "b\n"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_commits_what_is_printed_and_leaves_the_group(
    headrace: Command, tmp_path: Path, number: signal.Signals, protocol: str
) -> None:
    name = f"{number.name}-{protocol}"
    headrace.ok("produce", name, *"abc")
    arguments = (name, "--group", name, "--group-protocol", protocol, "--from-beginning")
    with Running(headrace, tmp_path / "out", *arguments) as member:
        member.wait_for(3)
        assert member.stop(number) == 128 + number
    found = describe(headrace, name)
    assert (found["state"], found["members"]) == ("Empty", [])
    assert committed(headrace, name) == {(name, 0): 3}


def test_nothing_is_committed_before_it_is_written(headrace: Command) -> None:
    headrace.ok("produce", "blocked", stdin=(b"x" * 99 + b"\n") * 20_000)
    process = subprocess.Popen(
        headrace.arguments("consume", "blocked", "--group", "blocked", "--from-beginning"),
        stdout=subprocess.PIPE,
        env=headrace.environment,
    )
    assert process.stdout is not None
    with process.stdout as pipe:
        try:
            wait_until(lambda: _records_committed(headrace, "blocked") > 0)
            promised = _records_committed(
                headrace, "blocked"
            )  # the pipe is full, so that it writes no further
        finally:
            process.kill()
            process.wait(TIMEOUT_S)
        written = pipe.read().count(b"\n")
    assert promised <= written < 20_000


def test_after_kill_9_another_goes_on_and_nothing_is_left_out(headrace: Command, tmp_path: Path) -> None:
    headrace.ok("topic", "create", "killed", "--partitions", "2")
    _produce_numbers(headrace, "killed", range(1000))
    arguments = ("killed", "--group", "killed", "--from-beginning")
    with Running(headrace, tmp_path / "first", *arguments) as first:
        first.wait_for(1000)
        wait_until(lambda: _records_committed(headrace, "killed") == 1000)
        _produce_numbers(headrace, "killed", range(1000, 2000))
        first.wait_for(1001)
        first.stop(signal.SIGKILL)
    _produce_numbers(headrace, "killed", range(2000, 3000))
    everything = {str(number) for number in range(3000)}
    with Running(headrace, tmp_path / "second", *arguments) as second:
        wait_until(lambda: {*first.lines(), *second.lines()} == everything, second.lines)
        assert second.stop(signal.SIGTERM) == 128 + signal.SIGTERM
    assert "0" not in second.lines()
    assert _records_committed(headrace, "killed") == 3000


def test_a_static_member_is_back_at_once_with_its_partitions(headrace: Command, tmp_path: Path) -> None:
    headrace.ok("topic", "create", "static", "--partitions", "2")
    group = ("static", "--group", "static", "--from-beginning")
    with Running(headrace, tmp_path / "other", *group, "--instance-id", "other"):
        with Running(headrace, tmp_path / "out", *group, "--instance-id", "till") as first:
            before = _assignments(settled(headrace, "static", members=2))
            first.stop(signal.SIGKILL)
        with Running(headrace, tmp_path / "out", *group, "--instance-id", "till") as second:
            for partition in ("0", "1"):
                headrace.ok("produce", "static", "x", "--partition", partition)
            second.wait_for(1)
            assert _assignments(settled(headrace, "static", members=2)) == before
            assert set(before) == {"other", "till"}


def test_a_second_process_of_the_same_instance_id_replaces_the_first(
    headrace: Command, tmp_path: Path
) -> None:
    headrace.ok("topic", "create", "fenced")
    group = ("fenced", "--group", "fenced", "--instance-id", "till")
    with Running(headrace, tmp_path / "1", *group) as first:
        settled(headrace, "fenced", members=1)
        with Running(headrace, tmp_path / "2", *group):
            assert first.complaint() == "another consumer is instance till of group fenced"


@NEWEST_OFTEN
def test_members_share_the_partitions_and_take_over_from_one_another(
    headrace: Command, tmp_path: Path, protocol: str
) -> None:
    name = f"shared-{protocol}"
    headrace.ok("topic", "create", name, "--partitions", "4")
    group = (name, "--group", name, "--group-protocol", protocol, "--from-beginning")
    with (
        Running(headrace, tmp_path / "1", *group) as first,
        Running(headrace, tmp_path / "2", *group) as second,
    ):
        found = settled(headrace, name, members=2)
        assert [sum(len(a["partitions"]) for a in m["assignment"]) for m in found["members"]] == [2, 2]
        _produce_to_each(headrace, name, 4)
        wait_until(lambda: len(first.lines() + second.lines()) == 4)
        assert {len(first.lines()), len(second.lines())} == {2}
        first.stop(signal.SIGTERM)
        _produce_to_each(headrace, name, 4)
        second.wait_for(6)
        assert second.stop(signal.SIGTERM) == 128 + signal.SIGTERM
    assert (len(first.lines()), len(second.lines())) == (2, 6)
    assert committed(headrace, name) == {(name, partition): 2 for partition in range(4)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_several_topics_and_regular_expressions(headrace: Command, protocol: str) -> None:
    for topic in ("eu-orders", "us-orders", "payments"):
        headrace.ok("produce", f"{protocol}-{topic}", topic)

    def read(group: str, *topics: str) -> list[str]:
        options = ("--group", f"{protocol}-{group}", "--group-protocol", protocol, "--exit-at-end")
        return sorted(headrace.ok("consume", *topics, *options).text.split())

    assert read("two", f"{protocol}-eu-orders", f"{protocol}-payments") == ["eu-orders", "payments"]
    assert read("pattern", f"^{protocol}-.*-orders") == ["eu-orders", "us-orders"]
    if protocol == "classic":  # the other one takes its time for the two together
        assert read("both", f"^{protocol}-us.*", f"{protocol}-payments") == ["payments", "us-orders"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_topic_that_comes_later_is_read_if_it_matches(
    headrace: Command, tmp_path: Path, protocol: str
) -> None:
    headrace.ok("produce", f"now-{protocol}", "now")
    topics = (f"now-{protocol}", f"^later-{protocol}.*")
    group = ("--group", f"later-{protocol}", "--group-protocol", protocol, "--from-beginning")
    with Running(headrace, tmp_path / "out", *topics, *group) as member:
        member.wait_for(1)
        headrace.ok("produce", f"later-{protocol}-orders", "later")
        assert member.wait_for(2) == ["now", "later"]


def test_a_reader_that_leaves_makes_the_member_leave_too(headrace: Command) -> None:
    headrace.ok("produce", "pipes", stdin=b"0123456789\n" * 50_000)
    with subprocess.Popen(
        headrace.arguments("consume", "pipes", "--group", "pipes", "--from-beginning"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=headrace.environment,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert os.read(process.stdout.fileno(), 11) == b"0123456789\n"
        process.stdout.close()
        assert process.wait(TIMEOUT_S) == -signal.SIGPIPE
        assert process.stderr.read() == b""
    assert describe(headrace, "pipes")["state"] == "Empty"


@NEWEST_OFTEN
def test_a_member_outlives_its_broker(tmp_path: Path, protocol: str) -> None:
    with UpProcess(tmp_path / "up") as up:
        headrace = Command(up.bootstrap)
        headrace.ok("produce", "survivor", *"abc")
        arguments = ("survivor", "--group", "survivor", "--group-protocol", protocol, "--from-beginning")
        with Running(headrace, tmp_path / "out", *arguments) as member:
            member.wait_for(3)
            wait_until(lambda: committed(headrace, "survivor") == {("survivor", 0): 3})
            up.kill()
            up.start()
            headrace.ok("produce", "survivor", *"def")
            assert member.wait_for(6) == list("abcdef")
            assert member.stop(signal.SIGTERM) == 128 + signal.SIGTERM
        assert committed(headrace, "survivor") == {("survivor", 0): 6}


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        ("consume absent --group g", 1, "there is no topic absent"),
        ("consume ^[ --group g", 1, "^[ is not a regular expression that librdkafka supports"),
        ("consume one two", 2, "Several topics, and --instance-id, need a --group."),
        ("consume one --instance-id i", 2, "Several topics, and --instance-id, need a --group."),
        ("consume one --group g --partition 0", 2, "leave out --partition"),
        ("consume one --group g --from 7", 2, "--from can only be beginning or end"),
        ("consume one --group g --group-protocol new", 2, "'new' is not one of 'classic', 'consumer'"),
        ("--bootstrap 127.0.0.1:1 consume one --group g", 1, "no broker answers at 127.0.0.1:1"),
    ],
)
def test_a_refusal_is_one_sentence(headrace: Command, arguments: str, status: int, sentence: str) -> None:
    refused = headrace(*arguments.split())
    assert refused.status == status, refused
    assert sentence in refused.complaint


def test_a_group_needs_a_name(headrace: Command) -> None:
    assert headrace("consume", "one", "--group", "").complaint.startswith("a group needs a name")
    assert headrace("group", "describe", "").complaint == "a group without a name cannot be asked for"


def _records_committed(headrace: Command, group: str) -> int:
    """How many records the group has done with, where the log begins at 0."""
    found = describe(headrace, group)
    return 0 if found is None else sum(each["committed"] or 0 for each in found["partitions"])


def _assignments(found: dict[str, list[dict[str, object]]]) -> dict[object, object]:
    return {member["instance_id"]: member["assignment"] for member in found["members"]}


def _produce_to_each(headrace: Command, topic: str, partitions: int) -> None:
    for partition in range(partitions):
        headrace.ok("produce", topic, str(partition), "--partition", str(partition))


def _produce_numbers(headrace: Command, topic: str, numbers: range) -> None:
    headrace.ok("produce", topic, stdin=b"".join(b"%d\n" % number for number in numbers))
