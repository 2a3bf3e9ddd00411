"""Files of one replica are damaged; consumers get every acknowledged record, and the replica is repaired."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from cluster.brokers import BrokerProcess
from cluster.cluster import Cluster
from cluster.coordinators import Embedded
from cluster.waiting import until
from headrace.client.doctor.reading import read_cluster
from headrace.protocol.batch import HEADER_SIZE, OFFSET_SIZE
from headrace.protocol.ids import TopicPartition
from headrace.storage.checks.verify import verify
from headrace.storage.epochs import FILE_NAME as EPOCHS
from headrace.storage.segment_list import FILE_NAME as SEGMENT_LIST
from support.records import split_batches
from wire.confluent import read, send

TOPIC: Final = "orders"
VALUES: Final = [b"%d:" % number + bytes(900) for number in range(300)]
SETTINGS: Final = {
    "log.scrub.interval.ms": "1000",
    "log.scrub.io.max.bytes.per.second": "1e9",
    "replica.lag.time.max.ms": "6000",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A topic with closed segments, which broker 1 leads."""
    with Embedded(tmp_path) as coordinator:
        cluster = Cluster(tmp_path, coordinator, settings=SETTINGS)
        with cluster.running():
            cluster.create_topic(TOPIC, 1, leader=1, segment_bytes="16384")
            for start in range(0, len(VALUES), 4):  # several batches in each segment
                messages = [{"value": value} for value in VALUES[start : start + 4]]
                reports = send(cluster.bootstrap, TOPIC, messages, acks="all")
                assert [error for error, _ in reports if error] == []
            for broker in cluster.brokers.values():
                until("closed segments are listed", partial(_has_list, broker))
            yield cluster


def _has_list(broker: BrokerProcess) -> bool:
    path = broker.log_dir / f"{TOPIC}-0" / SEGMENT_LIST
    return path.exists() and path.read_text().count("\n") > 10


def segments(broker: BrokerProcess) -> list[Path]:
    return sorted((broker.log_dir / f"{TOPIC}-0").glob("*.log"))


def values(cluster: Cluster, *bootstraps: str) -> list[bytes]:
    bootstrap = ",".join(bootstraps) or cluster.bootstrap
    return [message.value() for message in read(bootstrap, TOPIC, check_crcs=True)]


def flip(path: Path, position: int) -> None:
    """Change a byte in place, in the file that a running broker may have open."""
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 4]))


# -- damage --------------------------------------------------------------------------------------


def delete_a_segment(broker: BrokerProcess) -> None:
    for path in segments(broker)[3].parent.glob(f"{segments(broker)[3].stem}.*"):
        path.unlink()


def delete_the_first_segment(broker: BrokerProcess) -> None:
    segments(broker)[0].unlink()


def cut_a_segment_at_a_batch(broker: BrokerProcess) -> None:
    path = segments(broker)[3]
    os.truncate(path, path.stat().st_size - len(split_batches(path.read_bytes())[-1]))


def swap_two_segments(broker: BrokerProcess) -> None:
    first, second = segments(broker)[3:5]
    aside = first.with_name("aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)


def flip_a_base_offset(broker: BrokerProcess) -> None:
    path = segments(broker)[3]
    flip(path, path.stat().st_size - len(split_batches(path.read_bytes())[-1]) + OFFSET_SIZE - 1)


def flip_a_payload(broker: BrokerProcess) -> None:
    flip(segments(broker)[3], HEADER_SIZE + 500)


def flip_a_length(broker: BrokerProcess) -> None:
    path = segments(broker)[3]
    flip(path, len(split_batches(path.read_bytes())[0]) + OFFSET_SIZE)


def flip_a_leader_epoch(broker: BrokerProcess) -> None:
    flip(segments(broker)[3], 15)


OFFLINE: Final = [
    delete_a_segment,
    delete_the_first_segment,
    cut_a_segment_at_a_batch,
    swap_two_segments,
    flip_a_base_offset,
    flip_a_payload,
    flip_a_leader_epoch,
]


def await_repair(cluster: Cluster, broker: BrokerProcess) -> None:
    """Return when broker 1 has copied what it lacked, and is in the ISR."""
    broker.wait_for_log("is repaired", timeout_s=60)
    cluster.heal()


def check_alone(cluster: Cluster, broker: BrokerProcess) -> None:
    """Read everything from the repaired replica alone."""
    for each in cluster.brokers.values():
        if each is not broker:
            each.stop()
    until("it leads", lambda: cluster.state(TOPIC, 0).leader == broker.id)
    assert values(cluster, broker.bootstrap) == VALUES
    broker.stop()
    assert [problem for report in verify(broker.log_dir / f"{TOPIC}-0") for problem in report.problems] == []


@pytest.mark.parametrize("damage", OFFLINE)
def test_a_replica_that_was_damaged_while_all_were_stopped_is_repaired(
    cluster: Cluster, damage: Callable[[BrokerProcess], None]
) -> None:
    damaged = cluster.brokers[1]
    for broker in cluster.brokers.values():
        broker.kill()
    damage(damaged)
    damaged.start()  # first: it was the leader, and may lead again
    cluster.start()

    if damage is not flip_a_payload:  # which only the scrub finds
        assert values(cluster) == VALUES
    await_repair(cluster, damaged)

    assert values(cluster) == VALUES
    check_alone(cluster, damaged)


@pytest.mark.parametrize("damage", [flip_a_length, flip_a_payload, cut_a_segment_at_a_batch])
def test_a_leader_whose_closed_segment_is_damaged_hands_over_and_is_repaired(
    cluster: Cluster, damage: Callable[[BrokerProcess], None]
) -> None:
    damaged = cluster.brokers[1]
    assert cluster.leader(TOPIC, 0) is damaged
    damage(damaged)

    if damage is flip_a_length:  # a consumer may be the first to find it
        assert values(cluster) == VALUES
    cluster.await_other_leader(TOPIC, 0, damaged)
    await_repair(cluster, damaged)

    log = damaged.log.read_text()
    assert log.count("are damaged: ") == 1, log
    assert "leadership is handed over to one of the brokers [2, 3]" in log
    assert values(cluster) == VALUES
    check_alone(cluster, damaged)


def test_a_follower_with_a_wrong_leader_epoch_fetches_again_from_the_last_one_that_agrees(
    cluster: Cluster,
) -> None:
    follower = cluster.brokers[2]
    follower.kill()
    path = follower.log_dir / f"{TOPIC}-0" / EPOCHS
    version, count, *entries = path.read_text().splitlines()
    path.write_text("\n".join([version, str(int(count) + 1), *entries, "99 150", ""]))

    follower.start()
    cluster.heal()

    assert follower.log.read_text().count("names leader epoch 99 from offset 150 on") == 1
    check_alone(cluster, follower)


def test_the_doctor_names_a_broker_with_damage_that_no_replica_can_repair(cluster: Cluster) -> None:
    topic = NewTopic("alone", 1, replica_assignment=[[1]], config={"segment.bytes": "16384"})
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([topic])["alone"].result(timeout=30)
    for value in VALUES[:40]:
        assert send(cluster.bootstrap, "alone", [{"value": value}], acks="all")[0][0] is None
    broker = cluster.brokers[1]
    first, *_ = sorted((broker.log_dir / "alone-0").glob("*.log"))
    flip(first, HEADER_SIZE + 500)
    broker.wait_for_log("are damaged: ", timeout_s=60)

    findings = read_cluster(cluster.bootstrap).damaged

    assert list(findings) == [TopicPartition("alone", 0)]
    assert list(findings[TopicPartition("alone", 0)]) == [broker.id]
