"""What Spark's analyzed plan of a stream tells: whether Spark supports it, and whether it keeps state for it.

The operators that are known to keep no state are listed. With any other one on the way of the stream (an
aggregation, deduplication, a join of two streams, a watermark, a limit, an operator of a later Spark) the
answer is that Spark keeps state.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from headrace.pipeline.errors import PipelineError, in_words
from headrace.pipeline.expectations import METRIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STATELESS: Final = (
    *("ArrowEvalPython", "BatchEvalPython", "Expand", "Filter", "Generate", "MapInArrow", "MapInPandas"),
    *("Project", "RebalancePartitions", "Repartition", "RepartitionByExpression", "Sample"),
    *("StreamingRelationV2", "SubqueryAlias", "Union", "View"),
)
_JOIN: Final = "Join"
_METRICS: Final = "CollectMetrics"
_MODES: Final = {"append": "Append", "update": "Update", "complete": "Complete"}


def check_streaming(frame: "DataFrame", mode: str) -> None:
    """Raise PipelineError if Spark would refuse to start it: an aggregation without a watermark, say."""
    jvm = frame.sparkSession.sparkContext._jvm  # noqa: SLF001  Spark has no public call for this
    catalyst = jvm.org.apache.spark.sql.catalyst  # type: ignore[union-attr]
    output_mode = getattr(catalyst.streaming.InternalOutputModes, f"{_MODES[mode]}$")
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    try:
        catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(plan, getattr(output_mode, "MODULE$"))
    except Exception as error:
        raise PipelineError(in_words(error)) from error


def is_stateless(frame: "DataFrame") -> bool:
    """Return whether every batch of the stream can be computed by itself."""
    return all(map(_keeps_no_state, _streaming(frame._jdf.queryExecution().analyzed())))  # noqa: SLF001


def is_repeatable(frame: "DataFrame") -> bool:
    """Return whether Spark knows no reason why the rows would be others if they were computed again.

    Reasons are the current time and random values, also those of functions in Python that are declared so.
    """
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    jvm = frame.sparkSession.sparkContext._jvm  # noqa: SLF001
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern  # type: ignore[union-attr]
    return bool(plan.deterministic()) and not plan.containsPattern(patterns.CURRENT_LIKE())


def _streaming(plan: Any) -> Iterator[Any]:
    """Yield the operators of an analyzed plan that the stream passes, without those of static DataFrames."""
    if plan.isStreaming():
        yield plan
        for child in _children(plan):
            yield from _streaming(child)


def _keeps_no_state(operator: Any) -> bool:
    name: str = operator.nodeName()
    if name == _JOIN:
        return [bool(child.isStreaming()) for child in _children(operator)].count(True) == 1
    if name == _METRICS:
        return bool(operator.name().startswith(METRIC))  # those of users are reported for a stream alone
    return name in _STATELESS


def _children(plan: Any) -> Iterator[Any]:
    children = plan.children()
    for index in range(children.size()):
        yield children.apply(index)
