"""What the first request to a gateway costs: from the connection that has it started to its answer.

PYTHONPATH=tests .venv/bin/python bench/gateway_start.py [--starts 10] [PATH ...]

Every figure is a median over so many starts of `headrace up`, whose gateway nobody has asked before. The
later request is the same once more; processor time and memory are the gateway's after both. Python's bytecode
is cached, as it is wherever this has run before; --uncached is for where nothing is, and nothing may be kept.
"""

import argparse
import http.client
import os
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from support.process import UpProcess

PATHS: Final = ("/healthz", "/ui/", "/subjects", "/topics", "/api/v1/topics", "/metrics", "/openapi.json")
GATEWAY: Final = b"headrace.cli.machine.member\0gateway\0"


class Start(NamedTuple):
    """One life of a gateway."""

    first_ms: float
    later_ms: float
    cpu_ms: float
    rss_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--uncached", action="store_true")
    parser.add_argument("paths", nargs="*", default=PATHS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        environment = {
            "PYTHONDONTWRITEBYTECODE": "1" if options.uncached else "",
            "PYTHONPYCACHEPREFIX": str(Path(root) / "bytecode"),
        }
        for path in options.paths:
            start(Path(root) / "warm", path, environment)  # it fills the caches, Python's and the kernel's
            starts = [start(Path(root) / "up", path, environment) for _ in range(options.starts)]
            report(path, starts)


def report(path: str, starts: list[Start]) -> None:
    first, later, cpu, rss = (statistics.median(figures) for figures in zip(*starts, strict=True))
    spread = f"{min(each.first_ms for each in starts):.0f} to {max(each.first_ms for each in starts):.0f}"
    print(
        f"{path:<16} {first:>6.0f} ms ({spread}), then {later:.1f} ms;"
        f" {cpu:.0f} ms of processor, {rss:.0f} MB",
        flush=True,
    )


def start(root: Path, path: str, environment: Mapping[str, str]) -> Start:
    """Start a broker, ask its gateway twice, and look at its memory."""
    with UpProcess(root, environment=environment) as up:
        first_ms = ask(up.http, path)
        later_ms = ask(up.http, path)
        gateway = gateway_of(up.pid)
        found = Start(first_ms, later_ms, cpu_ms(gateway), rss_mb(gateway))
        up.stop()
    return found


def ask(url: str, path: str) -> float:
    """How many milliseconds it takes from connecting to the end of the answer."""
    where = urlsplit(url)
    began = time.perf_counter()
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
    finally:
        connection.close()
    took_ms = 1000 * (time.perf_counter() - began)
    assert answer.status == http.client.OK, (path, answer.status)
    return took_ms


def gateway_of(parent: int) -> int:
    """The process of the gateway that `parent` has started."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return next(int(pid) for pid in children if GATEWAY in Path(f"/proc/{pid}/cmdline").read_bytes())


def cpu_ms(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int) -> float:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024


if __name__ == "__main__":
    main()
