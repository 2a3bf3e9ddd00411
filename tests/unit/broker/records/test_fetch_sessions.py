from collections.abc import Callable

import pytest

from headrace.broker.records.fetch_sessions import (
    NO_SESSION,
    FetchSessions,
    NamedPartitions,
    Plan,
    SessionNotFound,
    SessionPartition,
    SessionTopicIds,
    WrongSessionEpoch,
)
from headrace.broker.slices import at_once
from headrace.security.principals import Principal


def request(
    session_id: int = 0, epoch: int = 0, wanted: dict[int, int] | None = None, forget: tuple[int, ...] = ()
) -> NamedPartitions:
    """A Fetch of topic `t`: partition to offset."""
    named = [
        SessionPartition("t", b"", partition, offset, 1000, -1)
        for partition, offset in (wanted or {}).items()
    ]
    return NamedPartitions(session_id, epoch, named, [("t", b"", partition) for partition in forget])


def plan(
    sessions: FetchSessions,
    fetch: NamedPartitions,
    *,
    by_id: bool = False,
    exists: Callable[[SessionPartition], bool] = lambda _: True,
    follower: bool = False,
    now_ms: int = 0,
) -> Plan:
    return at_once(sessions.plan(fetch, by_id=by_id, exists=exists, privileged=follower, now_ms=now_ms))


def offsets(sessions: FetchSessions, fetch: NamedPartitions) -> dict[int, int]:
    return {entry.partition: entry.offset for entry in plan(sessions, fetch).partitions}


def test_a_session_remembers_what_its_client_named_before() -> None:
    sessions = FetchSessions(10)
    opened = plan(sessions, request(wanted={0: 5, 1: 6})).session_id

    assert opened != NO_SESSION
    assert offsets(sessions, request(opened, 1)) == {0: 5, 1: 6}
    assert offsets(sessions, request(opened, 2, {1: 7, 2: 0})) == {0: 5, 1: 7, 2: 0}
    assert offsets(sessions, request(opened, 3, forget=(0, 2))) == {1: 7}


def test_a_fetch_without_a_session_leaves_nothing_behind() -> None:
    sessions = FetchSessions(10)

    planned = plan(sessions, request(epoch=-1, wanted={0: 0}))

    assert (planned.session_id, planned.incremental) == (NO_SESSION, False)


def test_the_last_epoch_closes_a_session() -> None:
    sessions = FetchSessions(10)
    opened = plan(sessions, request(wanted={0: 0})).session_id
    plan(sessions, request(opened, -1, {0: 0}))

    with pytest.raises(SessionNotFound):
        plan(sessions, request(opened, 1))


def test_an_epoch_out_of_line_is_refused_and_the_session_stays() -> None:
    sessions = FetchSessions(10)
    opened = plan(sessions, request(wanted={0: 3})).session_id

    with pytest.raises(WrongSessionEpoch):
        plan(sessions, request(opened, 2))
    assert offsets(sessions, request(opened, 1)) == {0: 3}


def test_one_session_names_topics_in_one_way() -> None:
    sessions = FetchSessions(10)
    opened = plan(sessions, request(wanted={0: 0})).session_id

    with pytest.raises(SessionTopicIds):
        plan(sessions, request(opened, 1), by_id=True)


def opened(sessions: FetchSessions, partitions: int, *, now_ms: int, follower: bool = False) -> int:
    """The id of a new session of so many partitions; 0 if there is no room for it."""
    wanted = dict.fromkeys(range(partitions), 0)
    return plan(sessions, request(wanted=wanted), now_ms=now_ms, follower=follower).session_id


def is_kept(sessions: FetchSessions, session_id: int) -> bool:
    """Whether a session is there; asks with an epoch that changes nothing."""
    try:
        plan(sessions, request(session_id, 99))
    except WrongSessionEpoch:
        return True
    except SessionNotFound:
        return False
    raise AssertionError("epoch 99 was accepted")


def test_a_session_that_is_unused_for_two_minutes_makes_room() -> None:
    sessions = FetchSessions(2)
    used, unused = opened(sessions, 5, now_ms=0), opened(sessions, 9, now_ms=1)
    plan(sessions, request(used, 1), now_ms=60_000)

    assert opened(sessions, 1, now_ms=120_001) == NO_SESSION
    assert opened(sessions, 1, now_ms=120_002) != NO_SESSION
    assert is_kept(sessions, used)
    assert not is_kept(sessions, unused)


def test_a_session_in_use_makes_room_only_for_a_larger_one_and_not_in_its_first_two_minutes() -> None:
    sessions = FetchSessions(1)
    first = opened(sessions, 5, now_ms=0)
    plan(sessions, request(first, 1), now_ms=119_999)
    assert opened(sessions, 9, now_ms=120_000) == NO_SESSION
    plan(sessions, request(first, 2), now_ms=200_000)

    assert opened(sessions, 4, now_ms=200_001) == NO_SESSION
    assert is_kept(sessions, first)
    assert opened(sessions, 6, now_ms=200_002) != NO_SESSION
    assert not is_kept(sessions, first)


def test_a_followers_session_takes_the_place_of_a_consumers_at_once_and_keeps_it() -> None:
    sessions = FetchSessions(1)
    consumer = opened(sessions, 100, now_ms=0)

    follower = opened(sessions, 1, now_ms=1, follower=True)

    assert follower != NO_SESSION
    assert not is_kept(sessions, consumer)
    plan(sessions, request(follower, 1), now_ms=200_000)
    assert opened(sessions, 100, now_ms=200_001) == NO_SESSION


def test_a_partition_that_does_not_exist_is_not_remembered() -> None:
    sessions = FetchSessions(10)

    answered = plan(sessions, request(wanted={0: 0, 7: 0}), exists=lambda entry: entry.partition < 5)

    assert answered.session_id == NO_SESSION
    assert [entry.partition for entry in answered.partitions] == [0, 7]
    assert (len(sessions), sessions.partition_count) == (0, 0)


def test_a_session_ends_with_a_request_that_adds_a_partition_that_does_not_exist() -> None:
    sessions = FetchSessions(10)
    session_id = opened(sessions, 2, now_ms=0)

    answered = plan(sessions, request(session_id, 1, {7: 0}), exists=lambda entry: entry.partition < 5)

    assert (answered.session_id, answered.incremental) == (NO_SESSION, True)
    assert [entry.partition for entry in answered.partitions] == [0, 1, 7]
    assert (len(sessions), sessions.partition_count) == (0, 0)


def test_partitions_are_bounded_in_one_session_and_in_all() -> None:
    sessions = FetchSessions(10, session_partitions=4, all_partitions=6)

    assert opened(sessions, 5, now_ms=0) == NO_SESSION
    first = opened(sessions, 4, now_ms=0)
    assert first != NO_SESSION
    assert opened(sessions, 3, now_ms=0) == NO_SESSION
    assert opened(sessions, 2, now_ms=0) != NO_SESSION
    assert sessions.partition_count == 6

    grown = plan(sessions, request(first, 1, {7: 0}))
    assert (grown.session_id, len(grown.partitions)) == (NO_SESSION, 5)
    assert sessions.partition_count == 2


def test_room_is_made_by_several_sessions_only_if_they_suffice() -> None:
    sessions = FetchSessions(10, all_partitions=6)
    small = [opened(sessions, 2, now_ms=0) for _ in range(3)]
    for session_id in small:
        plan(sessions, request(session_id, 1), now_ms=200_000)

    assert opened(sessions, 7, now_ms=200_001) == NO_SESSION
    assert all(is_kept(sessions, each) for each in small)
    assert opened(sessions, 4, now_ms=200_001) != NO_SESSION
    assert [is_kept(sessions, each) for each in small].count(True) == 1


def test_what_sessions_hold_is_counted_down_as_they_forget_and_close() -> None:
    sessions = FetchSessions(10)
    first, second = opened(sessions, 3, now_ms=0), opened(sessions, 4, now_ms=0)
    plan(sessions, request(first, 1, forget=(0, 1)))
    assert sessions.partition_count == 5

    plan(sessions, request(second, -1))
    assert sessions.partition_count == 1


def test_without_slots_every_fetch_is_a_full_one() -> None:
    assert plan(FetchSessions(0), request(wanted={0: 0})).session_id == NO_SESSION


def test_a_partition_is_news_when_it_has_data_an_error_or_other_watermarks() -> None:
    entry = plan(FetchSessions(1), request(wanted={0: 0})).partitions[0]

    assert entry.update_response(0, (5, 5, 0), has_data=False)
    assert not entry.update_response(0, (5, 5, 0), has_data=False)
    assert entry.update_response(0, (5, 5, 0), has_data=True)
    assert entry.update_response(0, (6, 5, 0), has_data=False)
    assert entry.update_response(3, (6, 5, 0), has_data=False)
    assert entry.update_response(0, (6, 5, 0), has_data=False), (
        "after an error a client hears that it is over"
    )


def test_a_partition_that_got_data_goes_to_the_end_of_the_line() -> None:
    sessions = FetchSessions(1)
    planned = plan(sessions, request(wanted={0: 0, 1: 0, 2: 0}))
    assert planned.session is not None
    planned.session.served(planned.partitions[0])

    assert [entry.partition for entry in planned.session.partitions] == [1, 2, 0]


def test_a_session_belongs_to_its_principal() -> None:
    sessions = FetchSessions(10)
    opened = plan(sessions, request(wanted={0: 5})).session_id

    def fetch_as_another(epoch: int) -> Plan:
        return at_once(
            sessions.plan(
                request(opened, epoch),
                by_id=False,
                exists=lambda _each: True,
                privileged=False,
                now_ms=0,
                principal=Principal("mallory"),
            )
        )

    with pytest.raises(SessionNotFound):
        fetch_as_another(1)
    fetch_as_another(-1)  # closes no session but its own
    fetch_as_another(0)
    assert offsets(sessions, request(opened, 1)) == {0: 5}
