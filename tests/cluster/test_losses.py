"""Brokers that have lost records, and know it: they do not lead before a broker that may have more."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from cluster.brokers import BrokerProcess
from cluster.cluster import Cluster
from cluster.coordinators import Embedded
from cluster.waiting import until
from headrace.storage.checks.losses import BOOT
from headrace.storage.directory import RECOVERY_POINTS
from support.records import split_batches
from wire.confluent import read, send, sent_offsets

TOPIC: Final = "orders"
HALF: Final = 60
FIRST: Final = [b"%d" % number for number in range(HALF)]
SECOND: Final = [b"%d" % number for number in range(HALF, 2 * HALF)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    settings = {"replica.high.watermark.checkpoint.interval.ms": "100"}
    with (
        Embedded(tmp_path) as coordinator,
        Cluster(tmp_path, coordinator, settings=settings).running() as made,
    ):
        made.create_topic(TOPIC, 1, leader=1)
        write(made, FIRST)
        yield made


def write(cluster: Cluster, values: list[bytes]) -> None:
    messages = [{"value": value, "partition": 0} for value in values]
    sent_offsets(send(cluster.bootstrap, TOPIC, messages, acks="all", batch_num_messages=1))


def check_nothing_is_lost(cluster: Cluster) -> None:
    cluster.heal()
    assert [message.value() for message in read(cluster.bootstrap, TOPIC)] == FIRST + SECOND


def log_of(broker: BrokerProcess) -> Path:
    return broker.log_dir / f"{TOPIC}-0" / f"{0:020}.log"


def kill_all(cluster: Cluster) -> None:
    """Kill all that run at once: nobody notices that another has died first."""
    running = [broker for broker in cluster.brokers.values() if broker.running]
    for broker in running:
        broker.pause()
    for broker in running:
        broker.kill()


def start_without_leading(cluster: Cluster, broker: BrokerProcess) -> None:
    """Start a broker alone; it must not lead."""
    broker.start()
    until("it is known to have lost records", lambda: cluster.state(TOPIC, 0).in_doubt == (broker.id,))
    assert cluster.state(TOPIC, 0).leader == -1


def damage_the_active_segment(broker: BrokerProcess) -> None:
    batches = split_batches(log_of(broker).read_bytes())
    before, damaged = b"".join(batches[:HALF]), bytearray(batches[HALF])
    damaged[-1] ^= 1  # a byte of its record, which the checksum covers
    log_of(broker).write_bytes(before + damaged + b"".join(batches[HALF + 1 :]))


def change_a_leader_epoch(broker: BrokerProcess) -> None:
    batches = split_batches(log_of(broker).read_bytes())
    with log_of(broker).open("r+b") as file:
        file.seek(sum(map(len, batches[:HALF])) + 12)
        file.write((77).to_bytes(4, "big"))


def remove_the_partition(broker: BrokerProcess) -> None:
    shutil.rmtree(log_of(broker).parent)


def empty_the_partition(broker: BrokerProcess) -> None:
    for file in log_of(broker).parent.iterdir():
        file.unlink()


@pytest.mark.parametrize(
    "damage",
    [
        damage_the_active_segment,
        change_a_leader_epoch,
        remove_the_partition,
        pytest.param(empty_the_partition, marks=pytest.mark.extended),
    ],
)
def test_a_broker_whose_log_is_damaged_waits_for_another_that_has_more(
    cluster: Cluster, damage: Callable[[BrokerProcess], None]
) -> None:
    write(cluster, SECOND)
    checkpoint = cluster.brokers[1].log_dir / "replication-offset-checkpoint"
    until(
        "the high watermark is in the checkpoint",
        lambda: checkpoint.exists() and f"{TOPIC} 0 {2 * HALF}" in checkpoint.read_text(),
    )
    kill_all(cluster)
    damage(cluster.brokers[1])

    start_without_leading(cluster, cluster.brokers[1])
    check_nothing_is_lost(cluster)


@pytest.mark.parametrize("through_the_elr", [False, pytest.param(True, marks=pytest.mark.extended)])
def test_a_broker_with_an_older_copy_of_its_directory_waits_for_another(
    cluster: Cluster, through_the_elr: bool
) -> None:
    old = cluster.brokers[1]
    copy = old.log_dir.with_name("copy")
    shutil.copytree(old.log_dir, copy, ignore=shutil.ignore_patterns("*.tmp"))
    write(cluster, SECOND)
    if through_the_elr:
        for each in (cluster.brokers[3], cluster.brokers[1]):
            each.kill()
        until("broker 1 is in the ELR", lambda: 1 in cluster.state(TOPIC, 0).elr)
    kill_all(cluster)
    shutil.rmtree(old.log_dir)
    copy.rename(old.log_dir)

    start_without_leading(cluster, old)
    check_nothing_is_lost(cluster)


def test_a_broker_with_a_copy_from_before_its_last_start_waits_for_another(cluster: Cluster) -> None:
    old = cluster.brokers[1]
    old.stop()
    copy = old.log_dir.with_name("copy")
    shutil.copytree(old.log_dir, copy, ignore=shutil.ignore_patterns("*.tmp"))
    old.start()
    cluster.heal()
    write(cluster, SECOND)
    kill_all(cluster)
    shutil.rmtree(old.log_dir)
    copy.rename(old.log_dir)

    start_without_leading(cluster, old)
    check_nothing_is_lost(cluster)


@pytest.mark.parametrize(
    "order", ["short one last", pytest.param("short one first", marks=pytest.mark.extended), "all at once"]
)
def test_what_a_majority_has_on_disk_survives_a_power_cut_of_all(cluster: Cluster, order: str) -> None:
    short = cluster.brokers[1]
    until(
        "broker 1 has the first half",
        lambda: log_of(short).stat().st_size == log_of(cluster.brokers[2]).stat().st_size,
    )
    flushed = log_of(short).stat().st_size
    write(cluster, SECOND)
    kill_all(cluster)
    for broker in cluster.brokers.values():
        boot = broker.log_dir / BOOT
        boot.write_text(json.dumps(json.loads(boot.read_text()) | {"boot": "another boot of the machine"}))
    with log_of(short).open("r+b") as file:
        file.truncate(flushed)

    sequence = {"short one last": (2, 3, 1), "short one first": (1, 3, 2), "all at once": ()}[order]
    for broker_id in sequence:
        cluster.brokers[broker_id].start()
    cluster.start()
    check_nothing_is_lost(cluster)


def test_damage_of_what_was_flushed_in_the_newest_segment_is_fetched_again(cluster: Cluster) -> None:
    damaged = cluster.brokers[1]
    write(cluster, SECOND)
    kill_all(cluster)
    (damaged.log_dir / RECOVERY_POINTS).write_text(f"0\n1\n{TOPIC} 0 {2 * HALF}\n")
    damage_the_active_segment(damaged)
    before = log_of(damaged).read_bytes()

    start_without_leading(cluster, damaged)
    assert log_of(damaged).read_bytes() == before  # it may be the only replica that comes back
    cluster.start()
    damaged.wait_for_log(f"{TOPIC}-0: truncated to offset {HALF}, fetching from broker", timeout_s=60)
    check_nothing_is_lost(cluster)
    for other in (cluster.brokers[2], cluster.brokers[3]):
        other.stop()
    until("it leads", lambda: cluster.state(TOPIC, 0).leader == damaged.id)
    assert [message.value() for message in read(damaged.bootstrap, TOPIC)] == FIRST + SECOND
