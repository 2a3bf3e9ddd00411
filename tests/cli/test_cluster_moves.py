"""`headrace cluster reassign` and `drain`: partitions that move while clients go on."""

import json
from pathlib import Path

import pytest

from cli.command import Command
from cli.load import Load
from support.process import ClusterProcess

MEGABYTES = (b"x" * 100_000 + b"\n") * 30


@pytest.fixture
def headrace(cluster: ClusterProcess) -> Command:
    return Command(cluster.bootstrap)


def test_a_partition_moves_to_the_brokers_it_is_told(headrace: Command) -> None:
    headrace.ok("topic", "create", "one", "--partitions", "2", "--replicas", "2")
    before = _replicas(headrace, "one")
    shown = headrace.ok("cluster", "reassign", "--topic", "one", "--partition", "0", "--to", "3,2", "--wait")
    assert [line.split() for line in shown.text.splitlines()] == [
        ["partition", "from", "to"],
        ["one-0", ",".join(map(str, before[0])), "3,2"],
        *([each.split() for each in ["0 of 1 partitions have moved"] if each in shown.text]),
        ["1", "of", "1", "partitions", "have", "moved"],
    ]
    assert _replicas(headrace, "one") == [[3, 2], before[1]]


def test_a_topic_moves_whole_and_its_leaders_are_spread(headrace: Command) -> None:
    headrace.ok("topic", "create", "whole", "--partitions", "3", "--replicas", "1")
    moved = headrace.ok("cluster", "reassign", "--topic", "whole", "--to", "1,2,3", "--wait", "--json")
    assert [each["replicas"] for each in moved.json["partitions"]] == [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    assert _replicas(headrace, "whole") == [[1, 2, 3], [2, 3, 1], [3, 1, 2]]


def test_a_plan_for_kafkas_tool_is_carried_out(headrace: Command, tmp_path: Path) -> None:
    headrace.ok("topic", "create", "planned", "--partitions", "2", "--replicas", "1")
    plan = tmp_path / "plan.json"
    entries = [
        {"topic": "planned", "partition": 0, "replicas": [2, 1], "log_dirs": ["any", "any"]},
        {"topic": "planned", "partition": 1, "replicas": [3, 2]},
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": entries}))
    headrace.ok("cluster", "reassign", "--from-file", str(plan), "--wait")
    assert _replicas(headrace, "planned") == [[2, 1], [3, 2]]


def test_a_move_under_load_loses_nothing_and_doubles_nothing(headrace: Command) -> None:
    headrace.ok(
        *("topic", "create", "busy", "--partitions", "3", "--replicas", "2"),
        *("--config", "min.insync.replicas=2"),
    )
    load = Load(headrace.bootstrap, "busy")
    with load.running():
        for target in ("3,1", "1,2", "2,3,1", "3,2"):
            headrace.ok("cluster", "reassign", "--topic", "busy", "--to", target, "--wait")
    load.check()
    assert all(sorted(replicas) == [2, 3] for replicas in _replicas(headrace, "busy"))


def test_a_move_that_takes_its_time_is_shown_and_cancelled(tmp_path: Path) -> None:
    """The new replica is allowed a byte a second, so that the move takes longer than this test."""
    with ClusterProcess(tmp_path, brokers=2) as cluster:
        headrace = Command(cluster.bootstrap)
        headrace.ok(
            *("topic", "create", "slow", "--replicas", "1"),
            *("--config", "leader.replication.throttled.replicas=*"),
            *("--config", "follower.replication.throttled.replicas=*"),
        )
        headrace.ok("cluster", "reassign", "--topic", "slow", "--to", "1", "--wait")
        for broker in ("1", "2"):
            rates = [f"{side}.replication.throttled.rate=1" for side in ("leader", "follower")]
            headrace.ok("config", "set", "broker", broker, *rates)
        headrace.ok("produce", "slow", stdin=MEGABYTES)
        late = headrace("cluster", "reassign", "--topic", "slow", "--to", "2", "--wait", "--timeout", "0.5")
        assert late.status == 1
        assert "1 of 1 partitions are still moving after 0.5 s: the reassignment continues" in late.err

        status = headrace.ok("cluster", "status", "--json").json
        (moving,) = status["reassignments"]
        assert (moving["topic"], moving["adding"], moving["removing"]) == ("slow", [2], [1])
        assert status["under_replicated"] == []
        assert "1 partition moving to other brokers" in headrace.ok("cluster", "status").text

        plan = headrace.ok("cluster", "drain", "1", "--dry-run", "--json").json["partitions"]
        assert [each["replicas"] for each in plan] == [[2]], "it is leaving, and has not left"
        cancelled = headrace.ok("cluster", "reassign", "--cancel", "--topic", "slow", "--json").json
        assert [each["topic"] for each in cancelled["cancelled"]] == ["slow"]
        assert _replicas(headrace, "slow") == [[1]]
        assert headrace.ok("cluster", "reassign", "--cancel").text == "no reassignment is in progress\n"


def test_a_broker_is_drained_under_load_and_nothing_is_left_on_it(tmp_path: Path) -> None:
    with ClusterProcess(tmp_path, arguments=["--racks", "a,b,b"]) as cluster:
        headrace = Command(cluster.bootstrap)
        headrace.ok("topic", "create", "busy", "--partitions", "6", "--replicas", "2")
        headrace.ok("topic", "create", "quiet", "--partitions", "2", "--replicas", "1")
        headrace.ok("consume", "quiet", "--group", "readers", "--exit-at-end")
        headrace.ok("cluster", "reassign", "--topic", "__consumer_offsets", "--to", "1,3", "--wait")
        plan = headrace.ok("cluster", "drain", "3", "--dry-run", "--json").json["partitions"]
        assert plan, "there is something on it"
        load = Load(headrace.bootstrap, "busy")
        with load.running():
            drained = headrace.ok("cluster", "drain", "3", "--wait")
        assert drained.text.splitlines()[-1] == "no replica is left on broker 3"
        load.check()
        broker = headrace.ok("cluster", "status", "--json").json["brokers"][2]
        assert (broker["id"], broker["leads"], broker["follows"]) == (3, 0, 0)
        moved = {(each["topic"], each["partition"]): each["replicas"] for each in plan}
        for (topic, index), replicas in moved.items():
            assert _replicas(headrace, topic)[index] == replicas, "as the dry run has said"
        assert headrace.ok("cluster", "drain", "3", "--wait").text == "no replica is left on broker 3\n"


def test_a_broker_cannot_be_drained_if_there_are_too_few_others(headrace: Command) -> None:
    headrace.ok("topic", "create", "trio", "--replicas", "3")
    refused = headrace("cluster", "drain", "2")
    assert "-0 has 3 replicas, and besides broker 2 only 2 are alive" in refused.complaint


def test_the_replicas_of_an_unknown_node_cannot_be_spread(headrace: Command) -> None:
    refused = headrace("cluster", "balance", "--node", "nowhere")
    assert refused.complaint.startswith("no live broker is on a node 'nowhere'")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["reassign", "--topic", "here", "--to", "1,9"], "here-0: there is no broker 9, only 1, 2, 3"),
        (["reassign", "--topic", "here", "--to", "1,1"], "here-0: brokers 1, 1: one is named twice"),
        (["reassign", "--topic", "nowhere", "--to", "1"], "there is no topic nowhere"),
        (["elect", "--topic", "here", "--partition", "4"], "here has no partition 4, only 0 to 0"),
        (["reassign", "--topic", "here", "--cancel", "--partition", "0"], "here-0 is not being moved"),
        (["drain", "9"], "there is no broker 9, only 1, 2, 3"),
        (["elect", "--topic", "nowhere"], "there is no topic nowhere"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(
    headrace: Command, arguments: list[str], sentence: str
) -> None:
    headrace.ok("topic", "create", "here", "--replicas", "1", "--if-not-exists")
    assert headrace("cluster", *arguments).complaint == sentence


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["reassign"], "Give --topic and --to, or --from-file."),
        (["reassign", "--topic", "here"], "Give --topic and --to, or --from-file."),
        (["reassign", "--cancel", "--to", "1"], "--cancel and --to contradict each other."),
        (["reassign", "--topic", "here", "--to", "one"], "--to one: expected broker ids such as 1,2,3."),
        (["elect", "--partition", "1"], "--partition needs a --topic."),
    ],
)
def test_options_that_do_not_fit_are_refused(headrace: Command, arguments: list[str], sentence: str) -> None:
    refused = headrace("cluster", *arguments)
    assert (refused.status, refused.complaint.partition(" See ")[0]) == (2, sentence)


def _replicas(headrace: Command, topic: str) -> list[list[int]]:
    described = headrace.ok("topic", "describe", topic, "--json").json
    return [each["replicas"] for each in described["partitions"]]


def _settings(headrace: Command, kind: str, name: str) -> dict[str, str]:
    """What is not as by default."""
    found = headrace.ok("config", "describe", kind, name, "--json").json
    return {each["name"]: each["value"] for each in found}
