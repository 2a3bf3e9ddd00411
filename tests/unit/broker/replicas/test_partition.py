"""A replica: its role, the high watermark, acknowledgements, and a follower's log."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.broker.errors import (
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeader,
    UnknownLeaderEpoch,
)
from headrace.broker.replicas.partition import Partition
from headrace.protocol.kafka_errors import FencedLeaderEpoch
from support.records import make_batch
from unit.broker.replica_samples import (
    ELSEWHERE,
    FOLLOWED,
    HERE,
    LED,
    REPLICAS,
    THERE,
    change,
    fetch,
    make_partition,
    write,
)


@pytest.fixture
def leader(tmp_path: Path) -> Partition:
    return make_partition(tmp_path)


@pytest.fixture
def follower(tmp_path: Path) -> Partition:
    return make_partition(tmp_path, FOLLOWED)


# -- roles -------------------------------------------------------------------------------------


def test_a_replica_without_a_state_leads_nothing_and_knows_no_leader(tmp_path: Path) -> None:
    partition = make_partition(tmp_path, None)

    assert (partition.leader, partition.leader_epoch, partition.version) == (-1, -1, -1)
    with pytest.raises(NotLeader):
        partition.ensure_leader()


def test_a_state_that_is_not_newer_is_ignored(leader: Partition) -> None:
    assert not leader.become(replace(FOLLOWED, version=6), REPLICAS, 0)
    assert not leader.become(replace(FOLLOWED, leader_epoch=2, version=8), REPLICAS, 0)

    assert leader.leader == HERE
    assert leader.leadership is not None


def test_the_same_state_with_other_replicas_applies_the_assignment(leader: Partition) -> None:
    assert not leader.become(LED, (HERE, THERE, ELSEWHERE, 4), 0)

    assert leader.leadership is not None
    assert set(leader.leadership.followers) == {THERE, ELSEWHERE, 4}


def test_another_isr_is_no_new_leader_epoch(leader: Partition) -> None:
    assert not change(leader, LED, isr=(HERE, THERE))

    assert leader.isr == (HERE, THERE)
    assert leader.meter.isr_shrinks == 1


@pytest.mark.parametrize(("epoch", "error"), [(2, FencedLeaderEpoch), (4, UnknownLeaderEpoch)])
def test_a_request_with_another_leader_epoch_is_refused(
    leader: Partition, epoch: int, error: type[Exception]
) -> None:
    leader.ensure_leader(3)

    with pytest.raises(error):
        leader.ensure_leader(epoch)


def test_a_follower_refuses_writes(follower: Partition) -> None:
    with pytest.raises(NotLeader, match=r"t-0: broker 2 leads, not 1 \(NOT_LEADER_OR_FOLLOWER\)"):
        write(follower)


# -- what is committed -------------------------------------------------------------------------


def test_the_high_watermark_is_what_every_member_of_the_isr_has(leader: Partition) -> None:
    write(leader, b"a", b"b", b"c")

    fetch(leader, THERE, 3)
    assert leader.high_watermark == 0
    fetch(leader, ELSEWHERE, 2)
    assert leader.high_watermark == 2


def test_a_follower_that_leaves_the_isr_no_longer_holds_the_high_watermark_back(leader: Partition) -> None:
    write(leader)
    fetch(leader, THERE, 1)

    change(leader, LED, isr=(HERE, THERE))

    assert leader.high_watermark == 1


def test_nothing_is_committed_while_the_isr_is_smaller_than_min_insync_replicas(leader: Partition) -> None:
    change(leader, LED, isr=(HERE,))

    write(leader)

    assert leader.high_watermark == 0
    with pytest.raises(NotEnoughReplicas, match=r"the ISR has 1 replicas, min.insync.replicas is 2"):
        leader.append(make_batch([b"b"]), acks_all=True)


def test_a_broker_without_a_replica_may_not_fetch_as_a_follower(leader: Partition) -> None:
    with pytest.raises(NotLeader):
        fetch(leader, 9, 0)


# -- acks=all ----------------------------------------------------------------------------------


def test_a_write_with_acks_all_is_answered_when_it_is_committed(leader: Partition) -> None:
    async def produce() -> None:
        commit = leader.append(make_batch([b"a"]), acks_all=True).commit
        assert commit is not None
        fetch(leader, THERE, 1)
        assert not commit.done()

        fetch(leader, ELSEWHERE, 1)

        assert await commit is None

    asyncio.run(produce())


def test_a_write_with_acks_1_does_not_wait(leader: Partition) -> None:
    assert leader.append(make_batch([b"a"]), acks_all=False).commit is None


def test_a_write_that_waits_fails_when_another_broker_leads(leader: Partition) -> None:
    async def produce() -> None:
        commit = leader.append(make_batch([b"a"]), acks_all=True).commit
        assert commit is not None

        change(leader, FOLLOWED, leader_epoch=4)

        assert isinstance(await commit, NotLeader)

    asyncio.run(produce())


def test_a_write_that_waits_fails_when_too_few_replicas_are_left_in_the_isr(leader: Partition) -> None:
    async def produce() -> None:
        commit = leader.append(make_batch([b"a"]), acks_all=True).commit
        assert commit is not None

        change(leader, LED, isr=(HERE,))

        assert isinstance(await commit, NotEnoughReplicasAfterAppend)

    asyncio.run(produce())


# -- following ---------------------------------------------------------------------------------


def test_a_follower_appends_what_its_leader_sends_and_takes_its_high_watermark(follower: Partition) -> None:
    batch = make_batch([b"a", b"b"], base_offset=0, leader_epoch=3)

    follower.append_as_follower(batch, high_watermark=1, log_start_offset=0)

    assert follower.log.log_end_offset == 2
    assert follower.high_watermark == 1


def test_the_high_watermark_of_a_follower_ends_at_its_log_and_never_decreases(follower: Partition) -> None:
    batch = make_batch([b"a"], base_offset=0, leader_epoch=3)

    follower.append_as_follower(batch, high_watermark=9, log_start_offset=0)
    assert follower.high_watermark == 1
    follower.append_as_follower(b"", high_watermark=0, log_start_offset=0)
    assert follower.high_watermark == 1


def test_a_leader_reports_where_the_log_of_a_follower_diverges(leader: Partition) -> None:
    write(leader)

    assert leader.diverges(1, 3) is None
    diverging = leader.diverges(5, 3)

    assert diverging is not None
    assert (diverging.epoch, diverging.end_offset) == (3, 1)
