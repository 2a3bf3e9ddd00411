"""Limits of failed authentications."""

from headrace.gateway.users import attempts
from headrace.gateway.users.attempts import BY_ADDRESS, BY_USER, WINDOW_S, FailedAttempts, network_of


def test_an_address_with_too_many_failures_waits() -> None:
    failed = FailedAttempts()
    for number in range(BY_ADDRESS):
        assert failed.wait_s("192.0.2.1", "alice", 0) == 0
        failed.add("192.0.2.1", f"user-{number}", 0)

    assert failed.wait_s("192.0.2.1", "anybody", 0) > 0
    assert failed.wait_s("192.0.2.2", "anybody", 0) == 0
    assert failed.wait_s("192.0.2.1", "anybody", WINDOW_S) == 0


def test_who_waits_as_long_as_told_may_try_again() -> None:
    failed = FailedAttempts()
    for _ in range(BY_ADDRESS + 3):
        failed.add("192.0.2.1", "alice", 0)

    wait_s = failed.wait_s("192.0.2.1", "alice", 0)

    assert failed.wait_s("192.0.2.1", "alice", wait_s - 0.1) > 0
    assert failed.wait_s("192.0.2.1", "alice", wait_s + 0.001) == 0


def test_nobody_locks_a_user_out_of_an_address_that_has_not_failed() -> None:
    failed = FailedAttempts()
    for number in range(BY_USER + 1):
        failed.add(f"192.0.2.{number}", "alice", 0)

    assert failed.wait_s("192.0.2.1", "alice", 0) > 0
    assert failed.wait_s("198.51.100.1", "alice", 0) == 0


def test_what_is_remembered_has_a_bound() -> None:
    failed = FailedAttempts()
    for number in range(attempts.REMEMBERED + 100):
        failed.add(f"host-{number}", f"user-{number}", 0)

    assert len(failed._addresses._counts) == len(failed._users._counts) == attempts.REMEMBERED


def test_an_ipv6_client_is_limited_by_its_network() -> None:
    assert network_of("2001:db8:1:2:3::4") == network_of("2001:db8:1:2::9")
    assert network_of("2001:db8:1:2::1") != network_of("2001:db8:1:3::1")
    assert network_of("::ffff:192.0.2.1") == network_of("192.0.2.1")
    assert network_of("unix") == "unix"
