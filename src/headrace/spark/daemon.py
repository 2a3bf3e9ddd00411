"""The process that Spark's Python workers are forked from, with the compiled code loaded.

Spark runs it as `python -m headrace.spark.daemon WORKER`, once for every kind of worker.
"""

import os
import sys
from typing import Any, Final

from pyspark import daemon

_TASKS: Final = "pyspark.worker"  # the other kinds plan, and need no compiled code

_worker = daemon.worker


def main() -> None:
    if _TASKS in sys.argv[1:]:
        _load()
    daemon.worker = _work
    daemon.manager()


def _load() -> None:
    """Import modules that take a second. Threads would not survive the fork, so numpy must not start any."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import headrace.spark.encode  # noqa: PLC0415  compiled code is read from its cache
    import headrace.spark.walk  # noqa: F401, PLC0415


def _work(sock: Any, authenticated: bool) -> int:
    """Run a worker. Spark may close the pipe before the last row, as after `limit`: that is not an error."""
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    main()
