"""A leader's view of its partition: what is committed, who is in sync."""

from headrace.replication.leader import Leader

LIVE = {1, 2, 3}
LAG_MS = 1000


def leading(*, isr: tuple[int, ...] = (1, 2, 3), wanted: int = 2, end: int = 0, now_ms: int = 0) -> Leader:
    return Leader.begin(
        1, replicas=(1, 2, 3), isr=isr, min_insync_replicas=wanted, log_end_offset=end, now_ms=now_ms
    )


def fetch(leader: Leader, broker_id: int, offset: int, *, end: int, now_ms: int = 0) -> None:
    leader.fetched(broker_id, offset, log_end_offset=end, now_ms=now_ms, broker_epoch=7)


def wants(leader: Leader, *, high_watermark: int, end: int, now_ms: int) -> set[int] | None:
    wanted = leader.desired_isr(
        high_watermark=high_watermark, log_end_offset=end, now_ms=now_ms, max_lag_ms=LAG_MS, live=LIVE
    )
    return None if wanted is None else set(wanted)


# -- what is committed -------------------------------------------------------------------------


def test_what_all_in_sync_have_is_committed() -> None:
    leader = leading()
    fetch(leader, 2, 8, end=10)
    fetch(leader, 3, 6, end=10)

    assert leader.high_watermark(10, 0) == 6


def test_nothing_is_committed_before_every_one_in_sync_was_heard_from() -> None:
    leader = leading()
    fetch(leader, 2, 10, end=10)

    assert leader.high_watermark(10, 4) == 4


def test_who_is_not_in_sync_is_not_waited_for() -> None:
    leader = leading(isr=(1, 2))
    fetch(leader, 2, 9, end=10)

    assert leader.high_watermark(10, 0) == 9


def test_what_is_committed_stays_so() -> None:
    leader = leading()
    fetch(leader, 2, 3, end=10)
    fetch(leader, 3, 3, end=10)

    assert leader.high_watermark(10, 7) == 7


def test_until_a_proposal_is_answered_both_sets_count() -> None:
    leader = leading(isr=(1, 2))
    fetch(leader, 2, 10, end=10)
    fetch(leader, 3, 6, end=10)

    leader.propose(frozenset({1, 2, 3}))
    assert leader.high_watermark(10, 5) == 6

    leader.use_isr((1, 2))
    assert leader.high_watermark(10, 6) == 10


def test_a_replica_that_is_to_leave_counts_until_it_has_left() -> None:
    leader = leading()
    fetch(leader, 2, 10, end=10)
    fetch(leader, 3, 6, end=10)

    leader.propose(frozenset({1, 2}))
    assert leader.high_watermark(10, 0) == 6

    leader.use_isr((1, 2))
    assert leader.high_watermark(10, 6) == 10


def test_with_too_few_in_sync_nothing_new_is_committed() -> None:
    assert leading(isr=(1,)).high_watermark(10, 4) == 4
    assert leading(isr=(1,), wanted=1).high_watermark(10, 4) == 10


def test_while_others_are_eligible_nothing_new_is_committed_whatever_is_wanted() -> None:
    leader = leading(isr=(1,), wanted=1)
    leader.use_isr((1,), (2,))
    assert leader.high_watermark(10, 4) == 4

    leader.use_isr((1,))
    assert leader.high_watermark(10, 4) == 10


# -- who is in sync ----------------------------------------------------------------------------


def test_a_follower_comes_into_sync_when_it_has_all_that_is_committed() -> None:
    leader = leading(isr=(1, 2))
    fetch(leader, 2, 10, end=10, now_ms=100)
    fetch(leader, 3, 7, end=10, now_ms=100)
    assert wants(leader, high_watermark=8, end=10, now_ms=100) is None

    fetch(leader, 3, 8, end=10, now_ms=110)
    assert wants(leader, high_watermark=8, end=10, now_ms=110) == {1, 2, 3}


def test_a_follower_needs_all_that_is_older_than_its_leader_whatever_that_knows_to_be_committed() -> None:
    leader = leading(isr=(1, 2), end=20)
    fetch(leader, 2, 20, end=20)
    fetch(leader, 3, 19, end=20)
    assert wants(leader, high_watermark=5, end=20, now_ms=0) is None

    fetch(leader, 3, 20, end=20)
    assert wants(leader, high_watermark=5, end=20, now_ms=0) == {1, 2, 3}


def test_a_follower_that_has_fallen_silent_does_not_come_into_sync_by_what_it_had() -> None:
    leader = leading(isr=(1, 2))
    fetch(leader, 2, 10, end=10, now_ms=5000)
    fetch(leader, 3, 10, end=10, now_ms=1000)

    assert wants(leader, high_watermark=10, end=10, now_ms=5000) is None


def test_a_broker_that_is_not_there_does_not_come_into_sync() -> None:
    leader = leading(isr=(1, 2))
    fetch(leader, 2, 10, end=10)
    fetch(leader, 3, 10, end=10)

    wanted = leader.desired_isr(
        high_watermark=10, log_end_offset=10, now_ms=0, max_lag_ms=LAG_MS, live={1, 2}
    )

    assert wanted is None


def test_a_follower_falls_out_of_sync_when_it_has_not_caught_up_for_too_long() -> None:
    leader = leading(now_ms=0)
    fetch(leader, 2, 10, end=10, now_ms=900)
    fetch(leader, 3, 5, end=10, now_ms=900)

    assert wants(leader, high_watermark=5, end=10, now_ms=1000) is None
    assert wants(leader, high_watermark=5, end=10, now_ms=1001) == {1, 2}


def test_a_follower_with_everything_stays_however_long_nothing_happens() -> None:
    leader = leading()
    fetch(leader, 2, 10, end=10)
    fetch(leader, 3, 10, end=10)

    assert wants(leader, high_watermark=10, end=10, now_ms=60_000) is None


def test_a_follower_of_a_busy_leader_keeps_up_if_it_gets_what_there_was_when_it_last_asked() -> None:
    leader = leading()
    for round_, now_ms in enumerate(range(0, 5000, 500)):
        for follower in (2, 3):
            fetch(leader, follower, round_ * 10, end=round_ * 10 + 10, now_ms=now_ms)

    assert wants(leader, high_watermark=90, end=100, now_ms=5000) is None


def test_a_new_leader_gives_its_followers_a_whole_lag_to_be_heard_from() -> None:
    leader = leading(end=10, now_ms=5000)

    assert wants(leader, high_watermark=0, end=10, now_ms=6000) is None
    assert wants(leader, high_watermark=0, end=10, now_ms=6001) == {1}


def test_one_proposal_at_a_time() -> None:
    leader = leading(now_ms=0)
    leader.propose(frozenset({1, 2}))
    assert wants(leader, high_watermark=0, end=10, now_ms=60_000) is None

    leader.withdraw()
    assert wants(leader, high_watermark=0, end=10, now_ms=60_000) == {1}


def test_followers_that_stay_keep_what_is_known_of_them() -> None:
    leader = leading(isr=(1, 2))
    fetch(leader, 2, 10, end=10)

    leader.use_replicas((1, 2, 4), now_ms=50)

    assert set(leader.followers) == {2, 4}
    assert (leader.followers[2].log_end_offset, leader.followers[2].broker_epoch) == (10, 7)
    assert leader.followers[4].log_end_offset == -1
