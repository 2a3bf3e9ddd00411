"""The brokers, offsets and old records of a cluster, as `headrace broker`, `topic` and `group` show them."""

import pytest

from cli.command import Command


def test_brokers_are_listed_with_their_disks(headrace: Command) -> None:
    (broker,) = headrace.ok("broker", "list", "--json").json
    assert (broker["id"], broker["state"], broker["controller"]) == (1, "up", True)
    (directory,) = broker["log_dirs"]
    assert 0 < directory["usable_bytes"] < directory["total_bytes"]
    head, row = headrace.ok("broker", "list").text.splitlines()
    assert head.split()[:4] == ["broker", "address", "rack", "state"]
    assert row.split()[1] == headrace.bootstrap


def test_a_broker_is_described_with_what_it_sets_itself(headrace: Command) -> None:
    found = headrace.ok("broker", "describe", "1", "--json").json
    own = {each["name"] for each in found["settings"]}
    assert "log.dirs" in own
    every = headrace.ok("broker", "describe", "1", "--all", "--json").json
    assert own < {each["name"] for each in every["settings"]}
    assert "logs in " in headrace.ok("broker", "describe", "1").text


def test_a_broker_with_all_replicas_in_sync_is_ready(headrace: Command) -> None:
    assert headrace.ok("broker", "ready", "1").text.startswith("broker 1 is ready: ")
    assert headrace.ok("broker", "ready", "1", "--json").json["ready"] == 1


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        ("broker ready 7", 1, "broker 7 is not ready: it is not registered"),
        ("broker describe 7", 1, "there is no broker 7, only 1"),
        ("broker unregister 1 --yes", 1, "broker 1 is running: stop it first"),
        ("broker describe one", 2, "'one' is not a valid integer"),
        ("broker --daemon list", 2, "`list` does not take the options that run a broker"),
        ("topic offsets nowhere", 1, "there is no topic nowhere"),
        ("topic offsets nowhere --at soon", 2, "--at soon: expected a time such as"),
        ("topic delete-records nowhere --all --yes", 1, "there is no topic nowhere"),
        ("topic delete-records nowhere", 2, "Give --before or --all."),
        ("group delete-offsets nobody --topic t --yes", 1, "there is no group nobody"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    headrace: Command, arguments: str, status: int, sentence: str
) -> None:
    refused = headrace(*arguments.split())
    assert refused.status == status, refused
    assert sentence in refused.complaint


def test_a_broker_that_is_gone_can_be_unregistered(headrace: Command) -> None:
    assert headrace.ok("broker", "unregister", "9", "--yes", "--json").json == {"unregistered": 9}


def test_offsets_are_shown_for_ends_and_times(headrace: Command) -> None:
    headrace.ok("topic", "create", "placed", "--partitions", "2")
    headrace.ok("produce", "placed", "--partition", "1", "a", "b", "c")

    def offsets(*arguments: str) -> list[int | None]:
        found = headrace.ok("topic", "offsets", "placed", "--json", *arguments).json
        return [each["offset"] for each in found]

    assert offsets() == [0, 3]
    assert offsets("--at", "earliest") == [0, 0]
    assert offsets("--at", "2020-01-01") == [None, 0]
    assert offsets("--at", "max-timestamp", "--partition", "1") in ([0], [1], [2])
    missing = headrace("topic", "offsets", "placed", "--partition", "5")
    assert missing.complaint == "placed has no partition 5, only 0 to 1"


def test_old_records_are_deleted_where_that_is_asked_for_twice(headrace: Command) -> None:
    headrace.ok("topic", "create", "pruned", "--partitions", "2")
    headrace.ok("produce", "pruned", "--partition", "0", "a", "b", "c")
    unasked = headrace("topic", "delete-records", "pruned", "--before", "1")
    assert unasked.complaint.startswith("Confirmation needs a terminal: give --yes")
    beyond = headrace("topic", "delete-records", "pruned", "--partition", "0", "--before", "9", "--yes")
    assert beyond.complaint == "pruned-0: offset 9 is past its end (OFFSET_OUT_OF_RANGE)"
    assert headrace.ok("consume", "pruned", "--exit-at-end").text == "a\nb\nc\n"

    cut = headrace.ok(
        "topic", "delete-records", "pruned", "--partition", "0", "--before", "1", "--yes", "--json"
    )
    assert cut.json == [{"topic": "pruned", "partition": 0, "start_offset": 1}]
    assert headrace.ok("consume", "pruned", "--exit-at-end").text == "b\nc\n"
    headrace.ok("topic", "delete-records", "pruned", "--all", "--yes")
    assert headrace.ok("consume", "pruned", "--exit-at-end").text == ""


def test_a_group_forgets_one_partition_and_keeps_the_other(headrace: Command) -> None:
    headrace.ok("topic", "create", "forgotten", "--partitions", "2")
    for partition in ("0", "1"):
        headrace.ok("produce", "forgotten", "--partition", partition, "x")
    headrace.ok("consume", "forgotten", "--group", "forgetful", "--exit-at-end")
    headrace.ok("group", "delete-offsets", "forgetful", "--topic", "forgotten:0", "--yes")
    (group,) = headrace.ok("group", "describe", "forgetful", "--json").json
    assert [each["partition"] for each in group["partitions"]] == [1]
    again = headrace("group", "delete-offsets", "forgetful", "--topic", "forgotten:0", "--yes")
    assert again.complaint == "group forgetful has committed nothing for forgotten:0"
