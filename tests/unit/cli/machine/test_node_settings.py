"""The settings of the brokers of a node."""

from pathlib import Path

import pytest

from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.setting import InvalidSetting
from headrace.cli.machine.node_settings import broker_count, node_configs


def config(**given: str) -> BrokerConfig:
    """`config(broker_id="10")` has broker.id=10."""
    return BrokerConfig.of({name.replace("_", "."): value for name, value in given.items()})


def test_ids_ports_and_directories_are_derived() -> None:
    node = config(
        broker_id="10",
        headrace_brokers="4",
        listeners="PLAINTEXT://:9092,SSL://10.0.0.1:9192",
        advertised_listeners="PLAINTEXT://one.example.com:9092,SSL://[fe80::1]:9192",
        log_dirs="/a,/b",
        num_partitions="6",
    )

    brokers = node_configs(node, broker_count(node, cpus=16))

    assert [each.broker_id for each in brokers] == [10, 11, 12, 13]
    assert [each.log_dir for each in brokers] == [
        Path("/a"),
        Path("/b"),
        Path("/a/brokers/12"),
        Path("/b/brokers/13"),
    ]
    assert [str(each) for each in brokers[3].listeners] == ["PLAINTEXT://:9095", "SSL://10.0.0.1:9195"]
    assert [str(each) for each in brokers[3].advertised] == [
        "PLAINTEXT://one.example.com:9095",
        "SSL://[fe80::1]:9195",
    ]
    assert {each.node for each in brokers} == {"node-10"}
    assert {each.integer("num.partitions") for each in brokers} == {6}


def test_the_first_broker_uses_the_addresses_and_the_directory_of_a_broker_that_was_alone() -> None:
    given = {"broker_id": "1", "log_dirs": "/a", "listeners": "PLAINTEXT://one:9092"}
    alone, first = config(**given), node_configs(config(headrace_brokers="2", **given), 2)[0]

    assert (first.broker_id, first.log_dir, first.listeners) == (1, alone.log_dir, alone.listeners)


def test_the_default_listener_and_the_default_directory_are_derived_too() -> None:
    second = node_configs(config(headrace_brokers="2"), 2)[1]

    assert [str(each) for each in second.listeners] == ["PLAINTEXT://:9093"]
    assert second.advertised == ()
    assert second.log_dir == Path("headrace-data/brokers/1")


def test_any_free_port_stays_any_free_port() -> None:
    brokers = node_configs(config(headrace_brokers="2", listeners="PLAINTEXT://127.0.0.1:0"), 2)
    assert [each.listeners[0].port for each in brokers] == [0, 0]


def test_a_node_may_have_a_name() -> None:
    assert node_configs(config(headrace_brokers="2", headrace_node="m1"), 2)[1].node == "m1"


def test_one_broker_has_the_settings_of_the_file_and_no_name_for_its_node() -> None:
    alone = config(headrace_brokers="auto", broker_id="7")
    (broker,) = node_configs(alone, 1)
    assert (broker.given, broker.node) == (alone.given, None)


@pytest.mark.parametrize(("log_dirs", "cpus", "count"), [("/a", 4, 4), ("/a,/b,/c", 2, 3), ("/a", 1, 1)])
def test_auto_is_a_broker_for_each_cpu_and_for_each_directory(log_dirs: str, cpus: int, count: int) -> None:
    assert broker_count(config(headrace_brokers="auto", log_dirs=log_dirs), cpus) == count


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"log_dirs": "/a,/b"},
            "log.dirs has 2 directories, and headrace.brokers=1: .* set headrace.brokers",
        ),
        ({"log_dirs": "/a,/b,/c", "headrace_brokers": "2"}, "set headrace.brokers to auto, or to 3 or more"),
        ({"headrace_brokers": "0"}, "headrace.brokers=0: expected auto, or a number from 1 to 100"),
        ({"headrace_brokers": "all"}, "expected auto, or a number"),
    ],
)
def test_more_directories_than_brokers_are_refused(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidSetting, match=sentence):
        config(**given)


@pytest.mark.parametrize(
    ("listeners", "is_refused"),
    [
        ("PLAINTEXT://:9092,SSL://:9093", True),
        ("PLAINTEXT://127.0.0.1:9092,SSL://127.0.0.1:9094", True),
        ("PLAINTEXT://127.0.0.1:9092,SSL://0.0.0.0:9094", True),
        ("PLAINTEXT://127.0.0.1:9092,SSL://127.0.0.2:9093", False),
        ("PLAINTEXT://:9092,SSL://:9095", False),
        ("PLAINTEXT://:0,SSL://:0", False),
    ],
)
def test_ports_of_different_listeners_need_a_gap(listeners: str, is_refused: bool) -> None:
    node = config(headrace_brokers="3", listeners=listeners)
    if is_refused:
        with pytest.raises(InvalidSetting, match="choose ports that are at least 3 apart"):
            node_configs(node, 3)
    else:
        assert len(node_configs(node, 3)) == 3


def test_a_port_beyond_the_highest_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="broker 2 of this node would use port 65536"):
        node_configs(config(headrace_brokers="2", listeners="PLAINTEXT://:65535"), 2)


def test_a_changed_file_changes_dynamic_settings_and_names_the_others() -> None:
    reloaded, fixed = config(log_retention_ms="1", broker_id="1").reloaded(
        config(log_retention_ms="2", broker_id="2")
    )
    assert (reloaded.integer("log.retention.ms"), reloaded.broker_id) == (2, 1)
    assert fixed == ["broker.id", "node.id"]
