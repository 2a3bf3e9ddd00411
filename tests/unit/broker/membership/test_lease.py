"""A lease ends by the clock, counted from when ZooKeeper was asked."""

from types import SimpleNamespace

import pytest

from headrace.broker.membership import lease as lease_module
from headrace.broker.membership.lease import Lease


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now_s=1000.0)
    monkeypatch.setattr(lease_module, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
    return clock


def test_a_new_lease_is_not_held() -> None:
    assert not Lease().is_held


def test_a_lease_ends_before_the_session_that_granted_it(clock: SimpleNamespace) -> None:
    lease = Lease()
    asked_at_s = lease.now_s()
    clock.now_s += 2  # the answer was late
    lease.renew(asked_at_s, session_timeout_s=6)

    clock.now_s = asked_at_s + 4.4
    assert lease.is_held
    clock.now_s = asked_at_s + 4.5
    assert not lease.is_held


def test_a_lease_ends_with_the_session(clock: SimpleNamespace) -> None:
    lease = Lease()
    lease.renew(clock.now_s, session_timeout_s=6)
    lease.revoke()

    assert not lease.is_held
