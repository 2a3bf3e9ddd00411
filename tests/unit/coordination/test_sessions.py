from headrace.coordination.embedded.state import Sessions

PASSWORD = b"p" * 16


def sessions_with(session_id: int = 7, timeout_ms: int = 1000, now_ms: float = 0) -> Sessions:
    sessions = Sessions(tick_ms=100)
    sessions.open(session_id, timeout_ms, PASSWORD)
    sessions.touch(session_id, now_ms)
    return sessions


def test_a_timeout_lies_between_two_and_twenty_ticks() -> None:
    sessions = Sessions(tick_ms=100)

    assert [sessions.negotiate(asked) for asked in (-1, 1, 200, 1234, 99_999)] == [200, 200, 200, 1234, 2000]


def test_a_session_expires_when_not_heard_of_for_its_timeout() -> None:
    sessions = sessions_with(timeout_ms=1000)
    sessions.touch(7, 500)

    assert sessions.expired(1499) == []
    assert sessions.expired(1500) == [7]


def test_the_right_password_brings_a_session_back_with_the_timeout_asked_for_now() -> None:
    sessions = sessions_with()
    attached = sessions.attach(7, PASSWORD, 300, now_ms=900)

    assert attached is not None
    assert attached.timeout_ms == 300
    assert sessions.expired(1199) == []
    assert sessions.expired(1200) == [7]


def test_a_wrong_password_or_id_brings_nothing_back() -> None:
    sessions = sessions_with()

    assert sessions.attach(7, b"guess", 1000, 0) is None
    assert sessions.attach(8, PASSWORD, 1000, 0) is None


def test_a_replayed_session_does_not_expire_before_its_clock_is_started() -> None:
    sessions = Sessions(tick_ms=100)
    sessions.open(7, 1000, PASSWORD)

    assert sessions.expired(1e15) == []
    sessions.restart_clocks(5000)
    assert sessions.expired(6000) == [7]


def test_ids_never_repeat_even_if_the_clock_goes_back() -> None:
    sessions = Sessions(tick_ms=100)
    first = sessions.fresh_id(1_700_000_000_000)
    sessions.open(first, 1000, PASSWORD)
    sessions.close(first)

    assert sessions.fresh_id(1_600_000_000_000) == first + 1


def test_the_password_does_not_show_in_logs() -> None:
    assert "ppp" not in repr(sessions_with().all()[0])
