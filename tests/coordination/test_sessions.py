"""Sessions: they outlive connections, expire in time, and take their ephemeral nodes along."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from kazoo.protocol.states import KazooState

from coordination.conftest import TICK_MS, Dial, RemoteClient, wait_until

MakeRemote = Callable[[float], RemoteClient]


def test_closing_removes_ephemeral_nodes_at_once(zk: Any, connect: Any) -> None:
    other = connect()
    other.create("/e", ephemeral=True)
    other.create("/p")
    other.stop()

    assert zk.get_children("/") == ["p"]


@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGSTOP])
def test_a_client_that_dies_or_freezes_loses_its_session(
    zk: Any, remote_client: MakeRemote, death: int
) -> None:
    remote = remote_client(1.0)
    assert zk.exists("/remote")
    before = time.monotonic()
    os.kill(remote.process.pid, death)
    wait_until(lambda: not zk.exists("/remote"))
    took_s = time.monotonic() - before

    assert took_s > 0.5  # the timeout, less what has passed since the last ping; a busy machine adds to it


def test_a_client_that_pings_keeps_its_session(zk: Any, remote_client: MakeRemote) -> None:
    remote_client(0.6)
    time.sleep(2)  # three timeouts and more: nothing else shows that nothing happens

    assert zk.exists("/remote")


def test_a_connection_lost_is_not_a_session_lost(zk: Any, connect: Any) -> None:
    client = connect()
    client.create("/e", ephemeral=True)
    session = client.client_id[0]
    states: list[str] = []
    client.add_listener(states.append)
    client._connection._socket.shutdown(2)
    wait_until(lambda: states[-2:] == [KazooState.SUSPENDED, KazooState.CONNECTED])

    assert client.client_id[0] == session
    assert zk.exists("/e").ephemeralOwner == session


def test_another_connection_with_id_and_password_takes_the_session_over(dial: Dial) -> None:
    first = dial()
    timeout_ms, session_id, password = first.connect(2000)
    second = dial()

    assert second.connect(2000, session_id, password) == (timeout_ms, session_id, password)
    assert first.is_closed_by_server()


def test_a_wrong_password_is_told_that_the_session_is_gone(dial: Dial) -> None:
    owner = dial()
    _, session_id, _ = owner.connect(2000)
    thief = dial()

    assert thief.connect(2000, session_id, b"guess".ljust(16))[0] == 0
    assert thief.is_closed_by_server()


def test_an_unknown_session_is_told_so(dial: Dial) -> None:
    wire = dial()

    assert wire.connect(2000, 0x1234567890, bytes(16))[0] == 0
    assert wire.is_closed_by_server()


@pytest.mark.parametrize(("asked", "granted"), [(1, 2 * TICK_MS), (1000, 1000), (10**6, 20 * TICK_MS)])
def test_timeouts_lie_between_two_and_twenty_ticks(dial: Dial, asked: int, granted: int) -> None:
    wire = dial()

    assert wire.connect(asked)[0] == granted


def test_a_client_from_the_future_is_turned_away(dial: Dial) -> None:
    wire = dial()
    wire.send_connect(2000, last_zxid=2**60)

    assert wire.is_closed_by_server()


def test_an_expired_session_cannot_be_taken_up_again(dial: Dial) -> None:
    wire = dial()
    _, session_id, password = wire.connect(2 * TICK_MS)
    assert wire.is_closed_by_server()  # it never pings

    assert dial().connect(2000, session_id, password)[0] == 0
