"""What a coordinator does when its log does not take what it has decided."""

import os

import pytest

from headrace.coordinators.errors import CoordinatorNotAvailable, NotCoordinator, RecordsTooLarge
from headrace.coordinators.group.classic import ClassicState
from headrace.coordinators.group.decision import Joined, Synced
from headrace.protocol.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from support.groups import beat_request, commit_request, join_request, sync_request
from unit.broker.group_office import HERE, THERE, Office


def full_device(office: Office) -> None:
    """Every write to the log fails from now on, as on a full disk."""
    os.close(office.log.active.file.descriptor)
    office.log.active.file.opened = os.open("/dev/full", os.O_RDWR)


# -- writes that fail ------------------------------------------------------------------------------


def test_what_too_few_replicas_could_not_keep_is_refused_before_anything_changes(office: Office) -> None:
    first = office.stable_member()
    second = office.join(join_request())
    office.join(join_request(first))
    waiting = office.sync(sync_request(second.result().member_id, 2))
    office.partition.min_insync_replicas, office.partition.replicas = 2, [HERE, THERE]

    with pytest.raises(CoordinatorNotAvailable):
        office.sync(sync_request(first, 2, {}))

    assert not waiting.done()
    office.partition.min_insync_replicas = 1
    office.sync(sync_request(first, 2, {}))
    assert isinstance(waiting.result(), Synced)


def test_a_coordinator_stays_while_too_few_replicas_are_in_sync(office: Office) -> None:
    first = office.stable_member()
    joining = office.join(join_request())
    before = office.shard
    office.partition.min_insync_replicas, office.partition.replicas = 2, [HERE, THERE]
    with pytest.raises(CoordinatorNotAvailable):
        office.commit(commit_request([("orders", 0, 5)], first, 1))
    office.partition.min_insync_replicas = 1

    assert office.shard is before
    assert office.shard.machine.offsets.of("g") == {}
    office.commit(commit_request([("orders", 0, 6)], first, 1))
    assert isinstance(office.join(join_request(first)).result(), Joined)
    assert isinstance(joining.result(), Joined)


def test_a_disk_that_fails_ends_the_coordinator(office: Office) -> None:
    first = office.stable_member()
    joining = office.join(join_request())
    full_device(office)

    with pytest.raises(NotCoordinator):
        office.commit(commit_request([("orders", 0, 5)], first, 1))

    assert isinstance(joining.exception(), NotCoordinator)
    with pytest.raises(NotCoordinator):
        _ = office.shard


def test_a_deadline_that_cannot_be_written_is_kept_by_the_coordinator_that_comes_after(
    office: Office,
) -> None:
    office.stable_member()
    office.partition.min_insync_replicas, office.partition.replicas = 2, [HERE, THERE]
    office.pass_time(10_500)
    office.partition.min_insync_replicas = 1
    office.load()
    assert office.group().state is ClassicState.STABLE

    office.pass_time(10_500)

    assert office.group().state is ClassicState.EMPTY


def test_what_is_too_large_to_be_remembered_is_refused_and_others_go_on(office: Office) -> None:
    member_id = office.stable_member()
    large = join_request(group_id="large", protocols=(("range", bytes(30_000)),))
    joined = office.join(large).result()
    coordinator = office.shard.machine

    with pytest.raises(RecordsTooLarge):
        office.sync(sync_request(joined.member_id, 1, group_id="large"))

    assert office.shard.machine is coordinator
    office.shard.machine.heartbeat("g", member_id, None, 1, office.shard.now_ms)
    assert office.group().state is ClassicState.STABLE


def test_what_is_due_for_others_happens_even_if_something_is_too_large(office: Office) -> None:
    """Two classic members of a consumer group, each of which fits in a record, and both together do not."""
    office.beat(beat_request("c", 0))
    large = ConsumerProtocolSubscription(topics=["orders"], user_data=bytes(12_000))
    protocols = (("range", encode_subscription(large, 0)),)
    for _ in range(2):
        office.join(join_request(protocols=protocols, session_timeout_ms=600_000)).result()
    office.beat(beat_request("c", 0, group_id="other"))

    office.pass_time(46_000)

    assert "c" in office.shard.machine.groups["g"].members
    assert not office.shard.machine.groups["other"].members
