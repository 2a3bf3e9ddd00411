"""The pipeline of a Python file."""

import importlib.util
import sys
from pathlib import Path
from typing import Final

from headrace.pipeline.declaration import Pipeline, Sink, View
from headrace.pipeline.errors import PipelineError
from headrace.system.extras import SPARK, MissingExtra, importing

MODULE: Final = "headrace_pipeline_"
"""The prefix of the module names of such files."""


def load(path: Path) -> Pipeline:
    """Return the one Pipeline of the file; PipelineError if there is none, or if the file fails."""
    if not path.is_file():
        raise PipelineError(f"there is no file {path}: `headrace pipeline init {path.stem}` creates one")
    # With the prefix, a pipeline called `numbers` does not replace the module of Python.
    spec = importlib.util.spec_from_file_location(f"{MODULE}{path.stem.replace('-', '_')}", path)
    if spec is None or spec.loader is None:
        raise PipelineError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.append(str(path.parent.absolute()))  # modules beside the file can be imported
    try:
        with importing(SPARK, f"the pipeline {path.name}"):
            spec.loader.exec_module(module)
    except (PipelineError, MissingExtra):
        raise
    except Exception as error:
        raise PipelineError(f"{path}: {type(error).__name__}: {error}") from error
    declared = {id(value): value for value in vars(module).values() if isinstance(value, Pipeline)}
    if len(declared) != 1:
        raise PipelineError(
            f"{path} has {len(declared) or 'no'} pipeline{'s' if declared else ''}; expected one: "
            f'pipeline = Pipeline("{path.stem}")'
        )
    pipeline = next(iter(declared.values()))
    pipeline.check()
    return pipeline


def pickle_by_value(pipeline: Pipeline) -> None:
    """Have the modules of the pipeline's directory sent to executors, which do not have the files."""
    from pyspark import cloudpickle  # noqa: PLC0415  slow to import

    steps: list[Sink | View] = [*pipeline.sinks.values(), *pipeline.views.values()]
    modules = (sys.modules.get(step.function.__module__) for step in steps if step.function is not None)
    files = {module.__file__ for module in modules if module and module.__name__.startswith(MODULE)}
    directories = {Path(file).parent for file in files if file is not None}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).parent in directories:
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
