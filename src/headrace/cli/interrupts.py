"""Signals that stop a command, and Ctrl-C while Spark is starting."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

# Read when the command starts, because Spark installs a handler of its own. `nohup` starts a command with HUP
# ignored, and a script's `&` with INT ignored: they stay so, as in Kafka. TERM always stops.
STOPPING: Final = (
    signal.SIGTERM,
    *(each for each in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(each) is not signal.SIG_IGN),
)


@contextmanager
def ctrl_c_waits() -> Iterator[None]:
    """Have Ctrl-C interrupt behind this block, which starts Spark, not in it; a second one does not wait.

    A Java whose Python goes before the two have met stays for ever.
    """
    pressed = 0

    def press(_number: int, _frame: object) -> None:
        nonlocal pressed
        pressed += 1
        if pressed > 1:
            raise KeyboardInterrupt
        click.echo("ending as soon as Spark has started; once more ends it at once", err=True)

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is press:  # Spark puts one of its own there
            signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt
