"""The lock of a pipeline on shared storage: leases, takeovers, and lost answers."""

import os
import socket
from collections.abc import Callable
from dataclasses import replace

import pytest
from obstore.store import MemoryStore

from headrace.pipeline.errors import PipelineError
from headrace.pipeline.storage.lease import Holder, Lease
from headrace.pipeline.storage.object_store import ObjectStore

KEY = "trucks/running"


class Clock:
    """Time passes only while somebody waits; `meanwhile` is what other machines do then."""

    def __init__(self) -> None:
        self.now = 0.0
        self.meanwhile: Callable[[], None] = lambda: None

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.meanwhile()


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore("memory://", MemoryStore())


@pytest.fixture
def clock() -> Clock:
    return Clock()


def lease(store: ObjectStore, clock: Clock) -> Lease:
    return Lease(store, KEY, "pipeline trucks", lease_s=30, clock=clock, wait=clock.wait)


def elsewhere(store: ObjectStore, clock: Clock) -> Lease:
    """A lease of a process on another machine."""
    other = lease(store, clock)
    other._holder = replace(other._holder, pid=17, host="other.example.com", machine="another")
    return other


def test_a_lock_is_held_until_it_is_released(store: ObjectStore, clock: Clock) -> None:
    first, second = lease(store, clock), lease(store, clock)
    first.acquire()
    assert second.owner() == (os.getpid(), socket.gethostname())
    first.release()
    assert second.owner() is None
    second.acquire()
    assert clock.now == 0


def test_a_lock_that_is_renewed_is_not_taken_over(store: ObjectStore, clock: Clock) -> None:
    first, second = elsewhere(store, clock), lease(store, clock)
    first.acquire()
    clock.meanwhile = first.renew
    with pytest.raises(PipelineError, match=r"running already, as process 17 on other\.example\.com"):
        second.acquire()
    assert not first.is_lost


def test_a_lock_is_taken_over_after_a_lease_without_renewal(store: ObjectStore, clock: Clock) -> None:
    first, second = elsewhere(store, clock), lease(store, clock)
    first.acquire()
    second.acquire()
    assert clock.now >= 30

    first.renew()
    assert first.is_lost
    first.release()  # which must not delete the lock of the second
    second.renew()
    assert not second.is_lost


def test_of_two_that_wait_for_a_lease_one_gets_it(store: ObjectStore, clock: Clock) -> None:
    gone, quicker, slower = elsewhere(store, clock), elsewhere(store, clock), lease(store, clock)
    gone.acquire()

    def overtake() -> None:
        if clock.now >= 30:
            clock.meanwhile = quicker.renew
            quicker._version = store.replace(KEY, quicker._holder.encode(), gone._version) or ""

    clock.meanwhile = overtake
    with pytest.raises(PipelineError, match="running already"):
        slower.acquire()
    assert not quicker.is_lost


def test_the_lock_of_a_process_of_this_machine_that_has_ended_is_taken_at_once(
    store: ObjectStore, clock: Clock
) -> None:
    killed = lease(store, clock)
    killed._holder = replace(killed._holder, pid=2**22 + 1)  # beyond the largest process id of Linux
    killed.acquire()
    assert lease(store, clock).owner() is None
    lease(store, clock).acquire()
    assert clock.now == 0


def test_a_lock_that_is_released_while_another_waits_is_free(store: ObjectStore, clock: Clock) -> None:
    first, second = elsewhere(store, clock), lease(store, clock)
    first.acquire()
    clock.meanwhile = first.release
    second.acquire()
    assert clock.now < 30
    assert second.owner() == (os.getpid(), socket.gethostname())


def test_a_renewal_whose_answer_was_lost_has_succeeded(store: ObjectStore, clock: Clock) -> None:
    held = lease(store, clock)
    held.acquire()
    # The write arrives, the answer does not, and the client sends it again.
    renewed = replace(held._holder, renewals=held._holder.renewals + 1)
    store.replace(KEY, renewed.encode(), held._version)
    held.renew()
    assert not held.is_lost
    held.renew()
    assert not held.is_lost


def test_a_lease_is_lost_while_its_renewal_hangs(store: ObjectStore, clock: Clock) -> None:
    held = lease(store, clock)
    held.acquire()
    clock.now = 30
    assert not held.is_lost
    clock.now = 31
    assert held.is_lost


def test_a_lease_that_could_not_be_renewed_in_time_is_lost(
    store: ObjectStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = lease(store, clock)
    held.acquire()

    def unavailable(*_: object) -> None:
        raise PipelineError("s3a://bucket: connection refused")

    monkeypatch.setattr(store, "replace", unavailable)
    clock.now = 29
    held.renew()
    assert not held.is_lost
    clock.now = 31
    held.renew()
    assert held.is_lost


def test_a_lock_is_renewed_while_it_is_held(store: ObjectStore) -> None:
    held = Lease(store, KEY, "pipeline trucks", lease_s=0.3)
    with held.held():
        before = store.read(KEY)
        while store.read(KEY) == before:
            assert not held.is_lost
        assert Holder.decode((store.read(KEY) or pytest.fail("no lock")).content).renewals > 0
    assert store.read(KEY) is None
