"""Sessions of the console."""

from itertools import count

from headrace.gateway.users.credentials import Password
from headrace.gateway.users.sessions import MAX_OF_USER, MAX_SESSIONS, Sessions

ALICE = Password("alice", "wonderland")


def made(**limits: float) -> Sessions:
    numbers = count()
    return Sessions(random_text=lambda _: f"random-{next(numbers)}", **limits)


def test_a_session_is_found_until_it_is_idle_for_too_long() -> None:
    sessions = made(idle_s=10, absolute_s=100)
    session_id = sessions.begin(ALICE, 0)

    for now_s in (9, 18, 27):
        found = sessions.find(session_id, now_s)
        assert found is not None
        assert found.credentials == ALICE
    assert sessions.find(session_id, 37) is None
    assert sessions.find(session_id, 28) is None  # it is gone for good
    assert len(sessions) == 0


def test_a_session_that_is_used_all_the_time_ends_as_well() -> None:
    sessions = made(idle_s=10, absolute_s=25)
    session_id = sessions.begin(ALICE, 0)

    assert all(sessions.find(session_id, now_s) for now_s in (8, 16, 24))
    assert sessions.find(session_id, 25) is None


def test_a_login_ends_the_session_that_the_browser_had() -> None:
    sessions = made()
    first = sessions.begin(ALICE, 0)
    second = sessions.begin(Password("bob", "builder"), 1, instead_of=first)

    assert sessions.find(first, 2) is None
    assert second != first
    assert sessions.find(second, 2) is not None


def test_a_logout_ends_one_session_of_a_user() -> None:
    sessions = made()
    first, second = sessions.begin(ALICE, 0), sessions.begin(ALICE, 0)

    sessions.end(first)
    sessions.end("nobody's")

    assert sessions.find(first, 1) is None
    assert sessions.find(second, 1) is not None


def test_each_session_has_a_token_of_its_own() -> None:
    sessions = made()
    one = sessions.find(sessions.begin(ALICE, 0), 0)
    other = sessions.find(sessions.begin(ALICE, 0), 0)
    assert one is not None
    assert other is not None

    assert one.accepts(one.csrf_token)
    assert not one.accepts(other.csrf_token)
    assert not one.accepts("")
    assert not one.accepts("\ud800")


def test_there_are_so_many_sessions_and_no_more() -> None:
    sessions = made()
    of_alice = [sessions.begin(ALICE, 0) for _ in range(MAX_OF_USER + 1)]
    assert sessions.find(of_alice[0], 0) is None  # her oldest one has ended
    assert sessions.find(of_alice[1], 0) is not None

    for number in range(MAX_SESSIONS):
        sessions.begin(Password(f"user-{number}", "secret"), 0)
    assert len(sessions) == MAX_SESSIONS


def test_ids_are_random_and_not_kept() -> None:
    sessions = Sessions()
    ids = {sessions.begin(ALICE, 0) for _ in range(10)}

    assert len(ids) == 10
    assert all(len(each) >= 43 for each in ids)
    assert not any(each.encode() in sessions._sessions for each in ids)
    assert "wonderland" not in repr(list(sessions._sessions.values()))
