"""Producers stay with the process that made them: librdkafka's threads do not come along into a fork."""

import ctypes
import os
from collections.abc import Callable
from typing import Any, Final, NoReturn
from weakref import WeakMethod

from headrace.client.errors import ClientError

_told: Final[list[WeakMethod[Callable[[], None]]]] = []


class Elsewhere:
    """In the place of a client that is the parent's."""

    def __getattr__(self, _name: str) -> Any:
        refuse()


def refuse(*_record: object) -> NoReturn:
    """In the place of what sends."""
    raise ClientError("this producer was made before the process forked: make one in the child")


def tell(producer_forked: Callable[[], None]) -> None:
    """Have this method called in every process that is forked from now on."""
    _told[:] = [each for each in _told if each() is not None]
    _told.append(WeakMethod(producer_forked))


def leave_alone(client: object) -> None:
    """Never close it: that would wait for threads that there are not."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))


def _forked() -> None:
    for each in _told:
        forked = each()
        if forked is not None:
            forked()


os.register_at_fork(after_in_child=_forked)
