"""`make amplification`: what every request of every API costs a real broker, and which cost too much.

    make amplification ARGS="--only fetch --bytes 1000000"

Prints a line for each request; exits with 1 if one of them, or what remains after all of an API, is too much.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from amplification.broker import Cost, MeasuredBroker
from amplification.limits import RETAINED_BYTES, excesses
from amplification.shapes import Shape, all_shapes, build
from amplification.world import SETTINGS, make_world
from headrace.protocol.api import request_class
from wire.raw import frame_of

BYTES = 150_000
ELEMENTS = 500_000
MEBIBYTE = 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="APIs whose names contain this")
    parser.add_argument("--bytes", type=int, default=BYTES, help="the size of each request")
    options = parser.parse_args()
    shapes = [shape for shape in all_shapes() if options.only.lower() in _name(shape).lower()]
    excess = [line for _, each in groupby(shapes, _name) for line in search(list(each), options.bytes)]
    say("", *(excess or ["nothing costs too much"]))
    sys.exit(1 if excess else 0)


def _name(shape: Shape) -> str:
    return request_class(shape.key).__name__


def search(shapes: list[Shape], size: int) -> Iterator[str]:
    """Measure the requests of one API on a broker of their own; yields what is too much."""
    with tempfile.TemporaryDirectory() as root, MeasuredBroker(Path(root), SETTINGS) as broker:
        world = make_world(broker)
        before = broker.rss_bytes
        for shape in shapes:
            frame = frame_of(build(shape, world, size, ELEMENTS), shape.version)
            cost = broker.cost_of(frame)
            say(f"{_shown(cost)}  {shape}")
            yield from (f"{shape}: {excess}" for excess in excesses(shape.key, cost))
        retained = broker.rss_bytes - before
        if retained > RETAINED_BYTES:
            yield f"{_name(shapes[0])}: {retained // MEBIBYTE} MiB remain after {len(shapes)} requests"


def _shown(cost: Cost) -> str:
    return (
        f"{cost.hold_s * 1e3:6.0f} ms hold {cost.cpu_s * 1e3:7.0f} ms CPU "
        f"{cost.rss_bytes / MEBIBYTE:7.1f} MiB {cost.sent_bytes:8d} -> {cost.received_bytes:9d} bytes"
    )


def say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
