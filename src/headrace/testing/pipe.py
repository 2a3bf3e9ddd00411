"""What a process says on a pipe, line by line, for whoever does not wait for ever."""

import os
import select
import time
from collections.abc import Iterator
from typing import IO


def lines(pipe: IO[bytes], timeout_s: float) -> Iterator[str]:
    """Every line as soon as it is whole, until the pipe ends or so many seconds have passed.

    Read past the buffer of `pipe`: what that had taken in, nobody would be woken for.
    """
    deadline = time.monotonic() + timeout_s
    readable = select.poll()
    readable.register(pipe, select.POLLIN)
    rest = b""
    while readable.poll(max(0.0, deadline - time.monotonic()) * 1000):
        piece = os.read(pipe.fileno(), 65536)
        if not piece:
            return
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
