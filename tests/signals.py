"""Signals as the programs that tests start find them."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

STOPPING: Final = (signal.SIGINT, signal.SIGHUP)


@contextmanager
def handled_by_children() -> Iterator[None]:
    """Have programs that are started in the block act on INT and HUP, also where this process ignores them.

    `nohup` and a script's `&` start the tests with these ignored, and a program inherits that: one that is
    sent INT to stop it would go on for ever. What is caught has its default action in a new program instead.
    So they are caught here, and this process itself goes on ignoring them.
    """
    ignored = [number for number in STOPPING if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda _number, _frame: None)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def ignored_by_children() -> Iterator[None]:
    """Have programs that are started in the block begin with INT and HUP ignored, as with `nohup` and `&`."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
