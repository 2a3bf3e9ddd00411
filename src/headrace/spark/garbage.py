"""The garbage collector in Spark's Python workers.

Spark collects garbage after everything that a worker does, which takes longer than many a task: the collector
looks at every object of every module. Objects that are frozen are left out.
"""

import gc

_is_frozen = False


def freeze_modules() -> None:
    """Freeze the objects of this process, which are mostly modules, once they are imported."""
    global _is_frozen  # noqa: PLW0603  the garbage collector is the process's, too
    if not _is_frozen:
        gc.collect()
        gc.freeze()
        _is_frozen = True
