"""When a failed query is started again, and which failures no restart resolves."""

import pytest

from headrace.pipeline import PipelineError, Restart
from headrace.pipeline.fan_out import SinkFailed
from headrace.pipeline.restarts import Restarts
from headrace.pipeline.runner import can_heal
from headrace.spark.errors import DataLoss, InvalidOption
from headrace.spark.sink_options import UnfitSchema
from headrace.spark.tables.schema import TableUnavailable, UnfitTable


def test_the_backoff_doubles_up_to_its_longest_and_ends_at_the_limit() -> None:
    restarts = Restarts(Restart(limit=5, backoff_s=2, max_backoff_s=10))

    assert [restarts.failed("shop.alerts", batch=7) for _ in range(6)] == [2, 4, 8, 10, 10, None]
    assert restarts.count("shop.alerts") == 5


def test_a_finished_batch_begins_a_new_row_of_restarts() -> None:
    restarts = Restarts(Restart(limit=2, backoff_s=1))

    assert [restarts.failed("shop.alerts", batch) for batch in (7, 7, 8, 8, 8)] == [1, 2, 1, 2, None]
    assert restarts.count("shop.alerts") == 4


def test_queries_are_counted_by_themselves() -> None:
    restarts = Restarts(Restart(limit=1))
    restarts.failed("shop.alerts", batch=0)

    assert restarts.failed("shop.archive", batch=0) == 1
    assert restarts.count("shop.sums") == 0


def test_a_limit_of_zero_is_no_restart() -> None:
    assert Restarts(Restart(limit=0)).failed("shop.alerts", batch=0) is None


@pytest.mark.parametrize("wrong", [{"limit": -1}, {"backoff_s": -1.0}, {"backoff_s": 5, "max_backoff_s": 4}])
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(PipelineError, match="expected a limit of at least 0"):
        Restart(**wrong)  # type: ignore[arg-type]


def as_spark_tells_it(kind: type[BaseException]) -> RuntimeError:
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    return RuntimeError(
        f"[STREAM_FAILED] Query failed\nTraceback (most recent call last):\n  ...\n{name}: no"
    )


@pytest.mark.parametrize("kind", [PipelineError, UnfitTable, UnfitSchema, InvalidOption, DataLoss])
def test_what_somebody_has_to_change_is_not_restarted(kind: type[BaseException]) -> None:
    assert not can_heal(as_spark_tells_it(kind))


@pytest.mark.parametrize("kind", [SinkFailed, TableUnavailable, ConnectionError])
def test_what_may_pass_is_restarted(kind: type[BaseException]) -> None:
    assert can_heal(as_spark_tells_it(kind))


def test_a_row_that_must_not_be_there_is_not_read_again() -> None:
    raised = "org.apache.spark.SparkRuntimeException: [USER_RAISED_EXCEPTION] orders: a row does not meet ..."
    assert not can_heal(RuntimeError(raised))
