"""`headrace topic` and `headrace config` against a real broker."""

import os
import pty
import re
import subprocess

import pytest

from cli.command import Command


def test_a_topic_from_its_creation_to_its_end(headrace: Command) -> None:
    made = headrace.ok("topic", "create", "life", "--partitions", "2", "--config", "segment.bytes=5000")
    assert made.text == "created life: 2 partitions, 1 replica each, segment.bytes=5000\n"
    assert "life" in headrace.ok("topic", "list").text
    altered = headrace.ok("topic", "alter", "life", "--partitions", "3")
    assert altered.text == "altered life: 3 partitions, 1 replica each, segment.bytes=5000\n"
    assert headrace.ok("topic", "delete", "life", "--yes").text == "deleted life\n"
    assert "life" not in [each["name"] for each in headrace.ok("topic", "list", "--json").json]


def test_a_description_has_leaders_replicas_and_offsets(headrace: Command) -> None:
    headrace.ok("topic", "create", "described", "--partitions", "2")
    headrace.ok("produce", "described", "a", "b", "--partition", "1")
    found = headrace.ok("topic", "describe", "described", "--json").json
    assert found["name"] == "described"
    assert re.fullmatch(r"[\w-]{22}", found["topic_id"])
    assert found["partitions"][1] == {
        "index": 1,
        "leader": 1,
        "replicas": [1],
        "in_sync": [1],
        "start_offset": 0,
        "next_offset": 2,
    }
    lines = headrace.ok("topic", "describe", "described").text.splitlines()
    assert lines[0].startswith("described: 2 partitions, 1 replica each  (id ")
    assert lines[2].split() == [
        *("partition", "leader", "replicas", "in", "sync", "start", "offset", "end", "offset")
    ]
    assert lines[4].split() == ["1", "1", "1", "1", "0", "2"]


def test_json_and_bootstrap_may_stand_before_the_command(headrace: Command) -> None:
    headrace.ok("topic", "create", "before")
    nowhere = Command("127.0.0.1:1")
    listed = nowhere.ok("--json", "--bootstrap", headrace.bootstrap, "topic", "list")
    assert {"name": "before", "partitions": 1, "replicas": 1} in listed.json
    assert nowhere.ok("topic", "list", "--bootstrap", headrace.bootstrap).text.startswith("topic")


def test_what_is_there_or_gone_already_can_be_fine(headrace: Command) -> None:
    headrace.ok("topic", "create", "twice")
    assert headrace.ok("topic", "create", "twice", "--if-not-exists").text == "twice exists already\n"
    assert headrace.ok("topic", "delete", "never", "--if-exists").text == "deleted nothing\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("topic create taken", "topic taken exists already"),
        (
            "topic create fresh --config retention.m=1",
            "fresh: there is no setting 'retention.m'; did you mean retention.ms?",
        ),
        ("topic create fresh --replicas 3", "replication factor 3"),
        ("topic create no/slash", "has characters other than"),
        ("topic describe nowhere", "there is no topic nowhere"),
        ("topic alter nowhere --partitions 2", "there is no topic nowhere"),
        ("topic alter taken --partitions 1", "taken has 2 partitions already, which cannot become 1"),
        ("topic delete nowhere", "there is no topic nowhere"),
        ("config describe topic nowhere", "there is no topic nowhere"),
        ("config describe broker 9", "there is no broker 9, only 1"),
        ("config set topic nowhere retention.ms=1", "there is no topic nowhere"),
        ("config set topic taken retention.ms=x", "retention.ms=x: expected a whole number"),
        ("config set broker 1 broker.id=3", "broker.id cannot be changed while the broker runs"),
        ("config unset topic taken retention.m", "there is no setting 'retention.m'"),
        (
            "--bootstrap 127.0.0.1:1 topic list",
            "no broker answers at 127.0.0.1:1: 127.0.0.1:1 cannot be reached: connection refused",
        ),
        ("--bootstrap nonsense topic list", "no broker answers at nonsense: expected HOST:PORT,..."),
    ],
)
def test_a_refusal_is_one_sentence_and_status_1(headrace: Command, arguments: str, sentence: str) -> None:
    headrace("topic", "create", "taken", "--partitions", "2")
    refused = headrace(*arguments.split())
    assert refused.status == 1, refused
    assert sentence in refused.complaint


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("topics", "No such command 'topics'"),
        ("topic create", "Missing argument 'NAME'. See `headrace topic create --help`."),
        ("topic create x --partitions 0", "0 is not in the range x>=1"),
        ("topic create x --config retention.ms", "--config retention.ms: expected NAME=VALUE"),
        ("topic alter x", "Missing option '--partitions'."),
        ("topic list --colour", "No such option '--colour'"),
        ("config set group g x=y", "'group' is not one of 'topic', 'broker'"),
        ("config describe broker one", "broker one: expected the id of a broker, a number"),
        ("produce t x --compression lzma", "'lzma' is not one of 'none', 'gzip', 'snappy', 'lz4', 'zstd'"),
        ("produce t x --header h", "--header h: expected NAME=VALUE"),
        ("consume t --from yesterday", "--from yesterday: expected beginning, end, an offset"),
        ("consume t --format %q", "%q: expected one of %k %v"),
    ],
)
def test_a_misuse_is_one_line_and_status_2(headrace: Command, arguments: str, sentence: str) -> None:
    refused = headrace(*arguments.split())
    assert refused.status == 2, refused
    assert sentence in refused.complaint


def test_a_topics_settings_are_set_shown_and_unset(headrace: Command) -> None:
    headrace.ok("topic", "create", "settings")
    assert "has its default" in headrace.ok("config", "describe", "topic", "settings").text
    done = headrace.ok("config", "set", "topic", "settings", "retention.ms=77", "cleanup.policy=compact")
    assert done.text == "topic settings: retention.ms=77, cleanup.policy=compact\n"
    shown = headrace.ok("config", "describe", "topic", "settings").text.splitlines()
    assert [line.split() for line in shown[1:]] == [
        ["cleanup.policy", "compact", "topic"],
        ["retention.ms", "77", "topic"],
    ]
    headrace.ok("config", "unset", "topic", "settings", "retention.ms")
    every = headrace.ok("config", "describe", "topic", "settings", "--all", "--json").json
    by_name = {each["name"]: each for each in every}
    assert by_name["retention.ms"]["value"] == "604800000"
    assert by_name["retention.ms"]["is_default"] is True


def test_a_brokers_setting_is_changed_while_it_runs(headrace: Command) -> None:
    headrace.ok("config", "set", "broker", "1", "log.cleaner.delete.retention.ms=1111")
    changed = {each["name"]: each for each in headrace.ok("config", "describe", "broker", "1", "--json").json}
    assert changed["log.cleaner.delete.retention.ms"]["value"] == "1111"
    assert changed["log.cleaner.delete.retention.ms"]["source"] == "broker"
    headrace.ok("config", "unset", "broker", "1", "log.cleaner.delete.retention.ms")


@pytest.mark.parametrize(("answer", "outcome"), [(b"n\n", "nothing was deleted"), (b"y\n", "deleted asked")])
def test_on_a_terminal_a_deletion_is_asked_about(headrace: Command, answer: bytes, outcome: str) -> None:
    headrace("topic", "create", "asked")
    terminal, ours = pty.openpty()
    with subprocess.Popen(
        headrace.arguments("topic", "delete", "asked"),
        stdin=ours,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=headrace.environment,
    ) as process:
        os.write(terminal, answer)
        out, err = process.communicate(timeout=40)
    os.close(terminal)
    os.close(ours)

    assert b"Delete asked with all records" in err
    assert outcome in (out + err).decode()


def test_a_script_has_to_say_that_it_deletes(headrace: Command) -> None:
    headrace.ok("topic", "create", "unasked-1")
    headrace.ok("topic", "create", "unasked-2")
    delete = ("topic", "delete", "unasked-1", "unasked-2")
    assert headrace(*delete).complaint.startswith(
        "Confirmation needs a terminal: give --yes to delete 2 topics (unasked-1, unasked-2)."
    )
    assert {"unasked-1", "unasked-2"} <= names(headrace)
    assert headrace.ok(*delete, "--yes").text == "deleted unasked-1, unasked-2\n"
    assert not {"unasked-1", "unasked-2"} & names(headrace)


def names(headrace: Command) -> set[str]:
    return {each["name"] for each in headrace.ok("topic", "list", "--json").json}
