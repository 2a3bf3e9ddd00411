"""The modules of a pipeline's file, which executors do not have."""

import sys
from pathlib import Path

from pyspark import cloudpickle

from headrace.pipeline.declaration import Pipeline, Sink, View
from headrace.pipeline.loader import MODULE


def pickle_by_value(pipeline: Pipeline) -> None:
    """Have the modules of the pipeline's directory sent to executors, which do not have the files."""
    steps: list[Sink | View] = [*pipeline.sinks.values(), *pipeline.views.values()]
    modules = (sys.modules.get(each.function.__module__) for each in steps if each.function is not None)
    files = {each.__file__ for each in modules if each is not None and each.__name__.startswith(MODULE)}
    directories = {Path(file).parent for file in files if file is not None}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).parent in directories:
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
