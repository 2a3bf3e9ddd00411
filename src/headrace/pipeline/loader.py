"""The pipeline of a Python file."""

import importlib.util
import sys
from pathlib import Path
from typing import Final

from headrace.pipeline.declaration import Pipeline
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
    found = {id(each): each for each in vars(module).values() if isinstance(each, Pipeline)}
    if len(found) != 1:
        raise PipelineError(
            f"{path} has {len(found) or 'no'} pipeline{'s' if found else ''}; expected one: "
            f'pipeline = Pipeline("{path.stem}")'
        )
    pipeline = next(iter(found.values()))
    pipeline.check()
    return pipeline
