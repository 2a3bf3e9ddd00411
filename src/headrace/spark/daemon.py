"""The process that Spark's Python workers are forked from, with their modules loaded.

Spark runs it as `python -m headrace.spark.daemon WORKER`, once for every kind of worker.
"""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from headrace.spark.garbage import freeze_modules

_ARCHIVE: Final = ("pyspark", "python", "lib", "pyspark.zip")
_TASKS: Final = "pyspark.worker"
# Threads do not survive a fork, so no module may be here whose import starts one, as that of pyarrow does.
_OF_ALL: Final = ("headrace.spark.source", "headrace.spark.tables.sources")
_COMPILED: Final = (
    "headrace.tables.reader.walk",
    "headrace.tables.reader.json_scan",
    "headrace.spark.encode",
)  # only tasks need it


def main() -> None:
    sys.path[:] = without_archive(sys.path)
    from pyspark import daemon  # noqa: PLC0415  from the path above

    _load(sys.argv[1:])
    daemon.worker = partial(_work, daemon.worker)
    daemon.manager()


def without_archive(path: Sequence[str]) -> list[str]:
    """Return the path without `pyspark/python/lib/pyspark.zip` if the package `pyspark` is in the path, too.

    Spark puts the archive first. It has no byte code, so that imports take three times as long.
    """
    installed = {Path(entry, *_ARCHIVE).resolve() for entry in path}
    return [
        entry for entry in path if not (entry.endswith(_ARCHIVE[-1]) and Path(entry).resolve() in installed)
    ]


def _load(workers: Sequence[str]) -> None:
    """Import modules that take a second, before any worker needs them."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy must not start threads
    for module in (*workers, *_OF_ALL):
        import_module(module)
    for module in _COMPILED if _TASKS in workers else ():
        import_module(module).load()  # half a second, in which every worker would look for it in a cache
    gc.freeze()


def _work(worker: Callable[[Any, bool], int], sock: Any, authenticated: bool) -> int:
    """Run a worker. Spark may close the pipe before the last row, as after `limit`: that is not an error."""
    try:
        return worker(sock, authenticated)
    except BrokenPipeError:
        return 1
    finally:
        freeze_modules()  # also those that were imported after the fork


if __name__ == "__main__":
    main()
