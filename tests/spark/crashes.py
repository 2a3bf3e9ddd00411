"""A driver of the exactly-once sink that dies at a chosen request, in a process of its own."""

import os
import signal
from collections.abc import Callable
from typing import Any, Final

import pytest

from headrace.client.wire.connection import Connection, InFlight

MOST_REQUESTS: Final = 100


class DyingConnections:
    """Connections that end their process with SIGKILL before request number `at` is sent, or after that.

    After that means: the broker has answered, and the answer is lost.
    """

    def __init__(self, at: int, *, answered: bool) -> None:
        self._left = at
        self._answered = answered
        self._send, self._receive = Connection.send, Connection.receive
        self._last: InFlight | None = None

    def install(self) -> None:
        def send(connection: Connection, *arguments: Any) -> InFlight:
            return self.send(connection, *arguments)

        def receive(connection: Connection, sent: InFlight) -> Any:
            return self.receive(connection, sent)

        patch = pytest.MonkeyPatch()
        patch.setattr(Connection, "send", send)
        patch.setattr(Connection, "receive", receive)

    def send(self, connection: Connection, *arguments: Any) -> InFlight:
        if self._left == 0 and not self._answered:
            os.kill(os.getpid(), signal.SIGKILL)
        sent = self._send(connection, *arguments)
        if self._left == 0:
            self._last = sent
        self._left -= 1
        return sent

    def receive(self, connection: Connection, sent: InFlight) -> Any:
        answer = self._receive(connection, sent)
        if sent is self._last:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


def dies(action: Callable[[], object], at: int, *, answered: bool) -> bool:
    """Run `action` in a child process that dies at request `at`; return False if it had fewer requests."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            DyingConnections(at, answered=answered).install()
            action()
            status = 0
        finally:
            os._exit(status)
    _, how = os.waitpid(child, 0)
    if os.WIFSIGNALED(how):
        assert os.WTERMSIG(how) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(how) == 0, "the driver has failed, see the output of the test"
    return False
