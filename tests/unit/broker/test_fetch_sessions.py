import pytest

from headrace.broker.fetch_sessions import (
    NO_SESSION,
    FetchSessions,
    SessionNotFound,
    SessionTopicIds,
    WrongSessionEpoch,
)
from headrace.protocol.schema.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic


def request(
    session_id: int = 0, epoch: int = 0, wanted: dict[int, int] | None = None, forget: tuple[int, ...] = ()
) -> FetchRequest:
    """A Fetch of topic `t`: partition to offset."""
    partitions = [
        FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1000)
        for partition, offset in (wanted or {}).items()
    ]
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic="t", partitions=partitions)] if partitions else [],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=forget)] if forget else [],
    )


def offsets(sessions: FetchSessions, fetch: FetchRequest) -> dict[int, int]:
    return {entry.partition: entry.offset for entry in sessions.plan(fetch, by_id=False).wanted}


def test_a_session_remembers_what_its_client_named_before() -> None:
    sessions = FetchSessions(10)
    opened = sessions.plan(request(wanted={0: 5, 1: 6}), by_id=False).session_id

    assert opened != NO_SESSION
    assert offsets(sessions, request(opened, 1)) == {0: 5, 1: 6}
    assert offsets(sessions, request(opened, 2, {1: 7, 2: 0})) == {0: 5, 1: 7, 2: 0}
    assert offsets(sessions, request(opened, 3, forget=(0, 2))) == {1: 7}


def test_a_fetch_without_a_session_leaves_nothing_behind() -> None:
    sessions = FetchSessions(10)

    plan = sessions.plan(request(epoch=-1, wanted={0: 0}), by_id=False)

    assert (plan.session_id, plan.incremental) == (NO_SESSION, False)


def test_the_last_epoch_closes_a_session() -> None:
    sessions = FetchSessions(10)
    opened = sessions.plan(request(wanted={0: 0}), by_id=False).session_id
    sessions.plan(request(opened, -1, {0: 0}), by_id=False)

    with pytest.raises(SessionNotFound):
        sessions.plan(request(opened, 1), by_id=False)


def test_an_epoch_out_of_line_is_refused_and_the_session_stays() -> None:
    sessions = FetchSessions(10)
    opened = sessions.plan(request(wanted={0: 3}), by_id=False).session_id

    with pytest.raises(WrongSessionEpoch):
        sessions.plan(request(opened, 2), by_id=False)
    assert offsets(sessions, request(opened, 1)) == {0: 3}


def test_one_session_names_topics_in_one_way() -> None:
    sessions = FetchSessions(10)
    opened = sessions.plan(request(wanted={0: 0}), by_id=False).session_id

    with pytest.raises(SessionTopicIds):
        sessions.plan(request(opened, 1), by_id=True)


def test_the_session_used_least_recently_makes_room() -> None:
    sessions = FetchSessions(2)
    first, second = (sessions.plan(request(wanted={0: 0}), by_id=False).session_id for _ in range(2))
    sessions.plan(request(first, 1), by_id=False)
    sessions.plan(request(wanted={0: 0}), by_id=False)

    sessions.plan(request(first, 2), by_id=False)
    with pytest.raises(SessionNotFound):
        sessions.plan(request(second, 1), by_id=False)


def test_without_slots_every_fetch_is_a_full_one() -> None:
    assert FetchSessions(0).plan(request(wanted={0: 0}), by_id=False).session_id == NO_SESSION


def test_a_partition_is_news_when_it_has_data_an_error_or_other_watermarks() -> None:
    entry = FetchSessions(1).plan(request(wanted={0: 0}), by_id=False).wanted[0]

    assert entry.is_news(0, (5, 5, 0), has_data=False)
    assert not entry.is_news(0, (5, 5, 0), has_data=False)
    assert entry.is_news(0, (5, 5, 0), has_data=True)
    assert entry.is_news(0, (6, 5, 0), has_data=False)
    assert entry.is_news(3, (6, 5, 0), has_data=False)
    assert entry.is_news(0, (6, 5, 0), has_data=False), "after an error a client hears that it is over"


def test_a_partition_that_got_data_goes_to_the_end_of_the_line() -> None:
    sessions = FetchSessions(1)
    plan = sessions.plan(request(wanted={0: 0, 1: 0, 2: 0}), by_id=False)
    assert plan.session is not None
    plan.session.served(plan.wanted[0])

    assert [entry.partition for entry in plan.session.wanted] == [1, 2, 0]
