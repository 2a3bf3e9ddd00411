"""Apache Kafka's own consumers in groups, and its tools that look at groups, against our broker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from compat.kafka_tools.java import KafkaJava
from wire.group_stories.brokers import quick_broker
from wire.group_stories.confluent_reading import numbers, subscribed
from wire.group_stories.groups import CLASSIC, CONSUMER, Groups
from wire.group_stories.java import GroupTools, VerifiableConsumer, killed_in_the_end
from wire.group_stories.reading import Place
from wire.group_stories.topics import all_of, new_topic, write
from wire.group_stories.waiting import eventually
from wire.process import BrokerProcess
from wire.requests import fresh_name

COOPERATIVE: Final = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
PROTOCOLS: Final = {
    "classic": (),
    "cooperative": ("--assignment-strategy", COOPERATIVE),
    "consumer": ("--group-protocol", "consumer"),
    "consumer-range": ("--group-protocol", "consumer", "--group-remote-assignor", "range"),
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, kafka_java: KafkaJava) -> Iterator[BrokerProcess]:
    del kafka_java  # without it there is nothing to start a broker for
    directory = tmp_path_factory.mktemp("groups")
    with quick_broker(directory, group_consumer_session_timeout_ms="3000") as process:
        yield process


@pytest.fixture(scope="module")
def tools(kafka_java: KafkaJava, broker: BrokerProcess) -> GroupTools:
    return GroupTools(kafka_java, broker.bootstrap)


@pytest.fixture
def group() -> str:
    return fresh_name("java")


def commit_half(bootstrap: str, group: str, topic: str, **options: str) -> None:
    """Read 20 numbers of 40, from two partitions, and commit 10 in each."""
    with subscribed(bootstrap, group, [topic], **options) as consumer:
        numbers(consumer, 1)
    Groups(bootstrap).alter(group, {Place(topic, 0): 10, Place(topic, 1): 10})


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_console_consumer_goes_on_where_its_group_stopped(
    tools: GroupTools, group: str, protocol: str
) -> None:
    topic = new_topic(tools.bootstrap, partitions=1, records=30)
    options = ("--topic", topic, "--from-beginning", "--command-property", f"group.protocol={protocol}")

    assert tools.console(group, 12, *options) == [str(number) for number in range(12)]
    assert Groups(tools.bootstrap).committed(group) == {Place(topic, 0): 12}
    assert tools.console(group, 18, *options) == [str(number) for number in range(12, 30)]


@pytest.mark.parametrize("protocol", ["consumer", pytest.param("classic", marks=pytest.mark.long)])
def test_the_console_consumer_reads_what_a_pattern_matches(
    tools: GroupTools, group: str, protocol: str
) -> None:
    first = new_topic(tools.bootstrap, partitions=1, records=3, prefix=f"include-{group}-a")
    second = new_topic(tools.bootstrap, partitions=1, records=4, prefix=f"include-{group}-b")
    options = ("--include", f"include-{group}-.*", "--from-beginning")

    printed = tools.console(group, 7, *options, "--command-property", f"group.protocol={protocol}")

    assert sorted(printed) == sorted("0011223")
    assert Groups(tools.bootstrap).committed(group) == {Place(first, 0): 3, Place(second, 0): 4}


@pytest.mark.parametrize(
    "options",
    [
        # Headrace's range assignor is compared with Kafka's in test_assignors_against_kafka.py.
        pytest.param(options, id=name, marks=pytest.mark.long if name == "consumer-range" else [])
        for name, options in PROTOCOLS.items()
    ],
)
def test_verifiable_consumers_share_hand_over_and_resume(
    tools: GroupTools, group: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    topic = new_topic(tools.bootstrap, partitions=4, records=10)
    groups, places = Groups(tools.bootstrap), sorted(all_of(topic, 4))
    if "consumer" not in options:
        (tmp_path / "quick.properties").write_text("heartbeat.interval.ms=200\n")
        quick = ("--session-timeout", "3000", "--command-config", str(tmp_path / "quick.properties"))
        options = (*options, *quick)
    with killed_in_the_end([]) as consumers:
        for name in ("first", "second"):
            consumers.append(VerifiableConsumer(tools, group, topic, tmp_path / name, *options))
        first, second = consumers
        eventually(lambda: len(first.owned) == len(second.owned) == 2, tell=first.complaints, timeout_s=40)
        eventually(lambda: groups.committed(group) == dict.fromkeys(places, 10), tell=first.complaints)

        first.close()
        eventually(lambda: second.owned == all_of(topic, 4), tell=second.complaints)
        for place in places:
            write(tools.bootstrap, topic, place.partition, range(10, 20))
        eventually(lambda: groups.committed(group) == dict.fromkeys(places, 20), tell=second.complaints)

        second.kill()
        third = VerifiableConsumer(tools, group, topic, tmp_path / "third", *options)
        consumers.append(third)
        eventually(lambda: third.owned == all_of(topic, 4), tell=third.complaints, timeout_s=40)
        for place in places:
            write(tools.bootstrap, topic, place.partition, range(20, 30))
        eventually(lambda: groups.committed(group) == dict.fromkeys(places, 30), tell=third.complaints)
        third.close()

    everything = {(place, number) for place in places for number in range(30)}
    assert set(first.values + second.values + third.values) == everything
    assert sorted(third.values) == [(place, number) for place in places for number in range(20, 30)]


def test_java_and_librdkafka_share_a_group(tools: GroupTools, group: str, tmp_path: Path) -> None:
    topic = new_topic(tools.bootstrap, partitions=2, records=5)
    with (
        killed_in_the_end([VerifiableConsumer(tools, group, topic, tmp_path / "java")]) as consumers,
        subscribed(tools.bootstrap, group, [topic], partition_assignment_strategy="range") as ours,
    ):
        (java,) = consumers

        def shared() -> bool:
            ours.poll(0.05)
            return len(java.owned) == len(ours.assignment()) == 1

        eventually(shared, pause_s=0, tell=java.complaints, timeout_s=40)
        assert {Place(each.topic, each.partition) for each in ours.assignment()} | java.owned == all_of(
            topic, 2
        )
        java.close()


@pytest.mark.parametrize("protocol", ["consumer", pytest.param("classic", marks=pytest.mark.long)])
def test_kafka_consumer_groups_describes_a_group_at_work(
    tools: GroupTools, group: str, protocol: str, tmp_path: Path
) -> None:
    topic = new_topic(tools.bootstrap, partitions=1, records=10)
    options = ("--group-protocol", protocol, "--group-instance-id", "one")
    assignor = "range" if protocol == "classic" else "uniform"
    with killed_in_the_end(
        [VerifiableConsumer(tools, group, topic, tmp_path / "one", *options)]
    ) as consumers:
        groups = Groups(tools.bootstrap)
        eventually(lambda: groups.committed(group) == {Place(topic, 0): 10}, tell=consumers[0].complaints)
        (offsets,) = tools.table("--describe", "--group", group)
        (member,) = tools.table("--describe", "--group", group, "--members", "--verbose")
        (state,) = tools.table("--describe", "--group", group, "--state", "--verbose")
        listed = tools.table("--list", "--state", "stable")
        typed = tools.table("--list", "--type", protocol)
        reset = tools.groups(
            "--reset-offsets", "--to-earliest", "--group", group, "--topic", topic, "--execute"
        )
        deleted = tools.groups("--delete", "--group", group)
        forgotten = tools.groups("--delete-offsets", "--group", group, "--topic", topic)

    assert (offsets["TOPIC"], offsets["PARTITION"], offsets["CURRENT-OFFSET"]) == (topic, "0", "10")
    assert (offsets["LOG-END-OFFSET"], offsets["LAG"]) == ("10", "0")
    assert offsets["CONSUMER-ID"] == member["CONSUMER-ID"]
    assert (member["GROUP-INSTANCE-ID"], member["HOST"]) == ("one", "/127.0.0.1")
    assert (member["#PARTITIONS"], member["CURRENT-ASSIGNMENT"]) == ("1", f"{topic}:0")
    assert (state["ASSIGNMENT-STRATEGY"], state["STATE"], state["#MEMBERS"]) == (assignor, "Stable", "1")
    assert state["COORDINATOR (ID)"].split() == [tools.bootstrap, "(1)"]
    assert {"GROUP": group, "STATE": "Stable"} in listed
    assert {"GROUP": group, "TYPE": protocol.capitalize()} in typed
    if protocol == "consumer":
        assert state["GROUP-EPOCH"] == state["TARGET-ASSIGNMENT-EPOCH"] == member["CURRENT-EPOCH"]
        assert member["TARGET-ASSIGNMENT"] == f"{topic}:0"
    assert "the current state is Stable" in reset
    assert "GroupNotEmptyException" in deleted
    assert "GroupSubscribedToTopicException" in forgotten


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (("--to-earliest",), (0, 0)),
        pytest.param(("--to-latest",), (20, 20), marks=pytest.mark.long),
        pytest.param(("--to-offset", "7"), (7, 7), marks=pytest.mark.long),
        (("--to-offset", "700"), (20, 20)),
        pytest.param(("--shift-by", "3"), (13, 13), marks=pytest.mark.long),
        (("--shift-by", "-4"), (6, 6)),
        pytest.param(("--to-current",), (10, 10), marks=pytest.mark.long),
        (("--by-duration", "P1D"), (0, 0)),
        (("--to-datetime", "2100-01-01T00:00:00.000"), (20, 20)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value[0], str) else "",
)
def test_kafka_consumer_groups_resets_offsets(
    tools: GroupTools, group: str, wish: tuple[str, ...], expected: tuple[int, int]
) -> None:
    topic = new_topic(tools.bootstrap, partitions=2, records=20)
    commit_half(tools.bootstrap, group, topic)

    rows = tools.table("--reset-offsets", *wish, "--group", group, "--all-topics", "--execute")

    assert {row["PARTITION"]: row["NEW-OFFSET"] for row in rows} == {
        str(partition): str(offset) for partition, offset in enumerate(expected)
    }
    assert Groups(tools.bootstrap).committed(group) == {
        Place(topic, partition): offset for partition, offset in enumerate(expected)
    }


def test_a_reset_is_planned_exported_and_read_from_a_file(
    tools: GroupTools, group: str, tmp_path: Path
) -> None:
    topic = new_topic(tools.bootstrap, partitions=2, records=20)
    commit_half(tools.bootstrap, group, topic, group_protocol="consumer")
    groups, reset = Groups(tools.bootstrap), ("--reset-offsets", "--group", group)

    plan = tools.groups(*reset, "--to-offset", "15", "--topic", f"{topic}:1", "--dry-run", "--export")

    assert plan.strip().replace('"', "") == f"{topic},1,15"
    assert groups.committed(group) == {Place(topic, 0): 10, Place(topic, 1): 10}
    (tmp_path / "plan.csv").write_text(plan.strip() + "\n")
    tools.groups(*reset, "--from-file", str(tmp_path / "plan.csv"), "--execute")
    assert groups.committed(group) == {Place(topic, 0): 10, Place(topic, 1): 15}


@pytest.mark.parametrize(("options", "kind"), [({}, CLASSIC), ({"group_protocol": "consumer"}, CONSUMER)])
def test_kafka_consumer_groups_deletes_offsets_and_groups(
    tools: GroupTools, group: str, options: dict[str, str], kind: object
) -> None:
    topic = new_topic(tools.bootstrap, partitions=2, records=20)
    commit_half(tools.bootstrap, group, topic, **options)
    groups = Groups(tools.bootstrap)
    assert groups.listed()[group].type is kind

    (row,) = tools.table("--delete-offsets", "--group", group, "--topic", f"{topic}:1")
    assert (row["PARTITION"], row["STATUS"]) == ("1", "Successful")
    assert groups.committed(group) == {Place(topic, 0): 10}

    deleted = tools.groups("--delete", "--group", group)
    assert f"Deletion of requested consumer groups ('{group}') was successful." in deleted
    assert group not in tools.groups("--list").split()
    assert groups.committed(group) == {}
