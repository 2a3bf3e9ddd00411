"""A gateway in a process of its own that measures itself: `python -m http_amplification.served BOOTSTRAP`.

It prints its URL. To every line on its stdin it answers with the CPU seconds that it has used, the most that
the event loop worked at a stretch since the last line (in CPU seconds of its thread: other threads do not
count), its memory now and at its peak since then, and the CPU seconds of processes that it has started.
"""

import asyncio
import json
import os
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Final

from headrace.gateway.configuration import GatewaySettings
from headrace.gateway.listening import bound, url_of
from headrace.gateway.serving import serve
from headrace.system.event_loop import loop_factory

BEAT_S: Final = 0.005
_STATUS: Final = Path("/proc/self/status")
_FORGET_PEAK: Final = Path("/proc/self/clear_refs")


class Heart:
    """Beats on the event loop: what its thread has worked between two beats, nobody else got a turn for."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    async def beat(self) -> None:
        last_s = time.thread_time()
        while True:
            await asyncio.sleep(BEAT_S)
            now_s = time.thread_time()
            self.longest_s = max(self.longest_s, now_s - last_s)
            last_s = now_s


def measured(heart: Heart) -> dict[str, float]:
    fields = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
    longest_s, heart.longest_s = heart.longest_s, 0.0
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {
        "cpu_s": time.process_time(),
        "held_s": longest_s,
        "rss_bytes": int(fields["VmRSS"].split()[0]) * 1024,
        "peak_bytes": int(fields["VmHWM"].split()[0]) * 1024,
        "children_cpu_s": children.ru_utime + children.ru_stime,
    }
    _FORGET_PEAK.write_text("5")
    return found


def answer(heart: Heart, loop: asyncio.AbstractEventLoop) -> None:
    for _ in sys.stdin:
        asyncio.run_coroutine_threadsafe(
            asyncio.sleep(3 * BEAT_S), loop
        ).result()  # the last beat counts, too
        print(json.dumps(measured(heart)), flush=True)  # noqa: T201
    os._exit(0)


async def main() -> None:
    heart = Heart()
    with bound("127.0.0.1", 0) as listening:
        print(url_of(listening), flush=True)  # noqa: T201
        threading.Thread(target=answer, args=[heart, asyncio.get_running_loop()], daemon=True).start()
        beating = asyncio.ensure_future(heart.beat())
        await serve(GatewaySettings(bootstrap=sys.argv[1], read_timeout_s=5.0), listening)
        beating.cancel()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(main())
