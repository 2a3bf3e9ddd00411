"""How long each broker takes to start, and what it costs while nobody uses it."""

import time
from collections.abc import Iterator, Mapping

from compare.servers import MakeServer, Server
from compare.table import Expected, Figures, Line


def before_load(makers: Mapping[str, MakeServer], *, quick: bool) -> Iterator[Line[Server]]:
    """Fresh brokers beside the ones that the other lines use."""
    settle_s, idle_s = (2.0, 4.0) if quick else (5.0, 10.0)

    def run(server: Server) -> Figures:
        with makers[server.name]() as fresh:
            time.sleep(settle_s)
            cpu = fresh.cpu_seconds()
            time.sleep(idle_s)
            used = fresh.cpu_seconds() - cpu
            return {
                "s to Metadata": fresh.seconds_to_metadata,
                "RSS MB": fresh.resident_bytes() / 1e6,
                "CPU %": used / idle_s * 100,
            }

    yield Line(
        name="start, then idle",
        run=run,
        warm_up=False,
        rounds=1 if quick else 3,
        expected=[
            Expected(figure="s to Metadata", at_most=0.1),
            Expected(figure="RSS MB", at_most=0.25),
            Expected(figure="CPU %", at_most=1.0, absolute=True),
        ],
    )


def after_load() -> Iterator[Line[Server]]:
    yield Line(
        name="after all of this load",
        run=lambda server: {"RSS MB": server.resident_bytes() / 1e6},
        warm_up=False,
        rounds=1,
        expected=[Expected(figure="RSS MB")],
    )
