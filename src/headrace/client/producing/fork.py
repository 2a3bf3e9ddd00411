"""Producers after a fork: they cannot be used in the child, as librdkafka's threads do not survive a fork."""

import ctypes
import os
from collections.abc import Callable
from typing import Any, Final, NoReturn
from weakref import WeakMethod

from headrace.client.errors import ClientError

_told: Final[list[WeakMethod[Callable[[], None]]]] = []


class Elsewhere:
    """Stands for the parent's client, in a forked child."""

    def __getattr__(self, _name: str) -> Any:
        refuse()


def refuse(*_record: object) -> NoReturn:
    """Stands for the function that sends, in a forked child."""
    raise ClientError("this producer was made before the process forked: make one in the child")


def tell(producer_forked: Callable[[], None]) -> None:
    """Call this method in every process that is forked from now on."""
    _told[:] = [each for each in _told if each() is not None]
    _told.append(WeakMethod(producer_forked))


def leave_alone(client: object) -> None:
    """Never close the client: that would wait for threads that do not exist."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))


def _forked() -> None:
    for each in _told:
        forked = each()
        if forked is not None:
            forked()


os.register_at_fork(after_in_child=_forked)
