"""Where Spark's Python workers are forked from: a process that has loaded the compiled code already.

Spark runs it as `python -m headrace.spark.daemon WORKER`, once for every kind of worker.
"""

import os
import sys
from typing import Any, Final

from pyspark import daemon

_TASKS: Final = "pyspark.worker"  # the others plan, and need no compiled code

_worker = daemon.worker


def main() -> None:
    if _TASKS in sys.argv[1:]:
        _load()
    daemon.worker = _work
    daemon.manager()


def _load() -> None:
    """What takes a second to import. Threads would not survive the fork: numpy is kept from making any."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import headrace.spark.encode  # noqa: PLC0415  compiled code is read from its cache
    import headrace.spark.walk  # noqa: F401, PLC0415


def _work(sock: Any, authenticated: bool) -> int:
    """A worker's life. That Spark wants no more of its rows, as after `limit`, is not worth a trace."""
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    main()
