"""The garbage collector in Spark's Python workers.

Spark collects garbage after everything that a worker does, which takes longer than many a task: the collector
looks at every object of every module. Objects that are frozen are left out.
"""

import gc
from functools import cache


@cache
def freeze_modules() -> None:
    """Freeze the objects of this process, which are mostly modules, once they are imported."""
    gc.collect()
    gc.freeze()
