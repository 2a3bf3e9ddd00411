"""Errors of queries that a restart cannot resolve."""

from typing import Final

from headrace.pipeline.errors import PipelineError
from headrace.spark.errors import DataLoss, InvalidOption
from headrace.spark.sink_options import UnfitSchema
from headrace.spark.tables.schema import UnfitTable

_PERMANENT: Final = (PipelineError, UnfitTable, UnfitSchema, InvalidOption, DataLoss)
_NAMES: Final = tuple(f"{each.__module__}.{each.__qualname__}: " for each in _PERMANENT)
_RAISED: Final = "[USER_RAISED_EXCEPTION]"  # by raise_error: a bad row, or an expectation that is not met


def can_heal(error: BaseException) -> bool:
    """Return whether a restart may help after the failure of a query.

    Spark passes errors of Python on as text, in which a traceback names the class of each error.
    """
    text = str(error)
    return _RAISED not in text and not any(name in text for name in _NAMES)
