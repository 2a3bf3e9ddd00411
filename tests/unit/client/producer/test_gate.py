"""Who may send while a flush comes to its end."""

from threading import Thread
from typing import Any

import pytest

from headrace.client.errors import Closed
from headrace.client.producer.gate import Gate, Produce


class Sender:
    """Sends by what the gate has put here."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.produce: Produce
        self.gate = Gate(self.sent.append, lambda produce: setattr(self, "produce", produce))

    def send_elsewhere(self, record: object) -> bool:
        """Whether another thread can send this."""
        refused: list[BufferError] = []

        def work() -> None:
            try:
                self.produce(record)
            except BufferError as error:
                refused.append(error)

        thread = Thread(target=work)
        thread.start()
        thread.join()
        return not refused


def test_a_replaced_function_is_used_at_once_or_when_the_gate_opens() -> None:
    sender, others = Sender(), list[object]()
    sender.gate.use(others.append)
    sender.produce(1)
    with sender.gate.shut():
        sender.gate.use(sender.sent.append)
        assert not sender.send_elsewhere("others")
    sender.produce(2)
    assert (others, sender.sent) == ([1], [2])
    sender.gate.end()
    sender.gate.use(others.append)
    with pytest.raises(Closed):
        sender.produce(3)


def test_while_it_is_shut_only_the_thread_that_flushes_may_send() -> None:
    sender = Sender()
    with sender.gate.shut():
        assert not sender.send_elsewhere("others")
        sender.produce("of a callback")
    assert sender.send_elsewhere("others later")
    assert sender.sent == ["of a callback", "others later"]


def test_it_is_shut_until_the_last_flush_is_over() -> None:
    sender = Sender()
    with sender.gate.shut():
        with sender.gate.shut():
            assert not sender.send_elsewhere("others")
        assert not sender.send_elsewhere("others")
    assert sender.send_elsewhere("others")


def test_who_waits_goes_on_when_it_is_opened() -> None:
    sender = Sender()
    assert not sender.gate.wait(60)  # it is open
    with sender.gate.shut():
        thread = Thread(target=sender.gate.wait, args=(60,))
        thread.start()
        assert sender.gate.wait(0)
    thread.join(30)
    assert not thread.is_alive()


def test_what_is_closed_stays_closed_whoever_flushes() -> None:
    sender = Sender()
    with sender.gate.shut():
        assert sender.gate.end()
        with sender.gate.shut():
            pass
    assert not sender.gate.end()
    with pytest.raises(Closed):
        sender.produce("late")
    assert sender.sent == []
