"""Signals that stop a command, and Ctrl-C while Spark is starting."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

# Read when the command starts, because Spark installs a handler of its own. `nohup` starts a command with HUP
# ignored, and a script's `&` with INT ignored: both stay ignored, as in Kafka. TERM always stops.
STOPPING: Final = (
    signal.SIGTERM,
    *(each for each in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(each) is not signal.SIG_IGN),
)


@contextmanager
def ctrl_c_waits() -> Iterator[None]:
    """Delay the first Ctrl-C to the end of this block, which starts Spark; a second one interrupts at once.

    A Java process whose Python parent ends before the two have connected would never end.
    """
    pressed = 0

    def press(_number: int, _frame: object) -> None:
        nonlocal pressed
        pressed += 1
        if pressed > 1:
            raise KeyboardInterrupt
        click.echo("stopping as soon as Spark has started; Ctrl-C again stops at once", err=True)

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is press:  # Spark installs a handler of its own
            signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt
