"""What Spark 4.3 says when something fails, shortened where it repeats itself, and what we make of it."""

import pytest

from headrace.pipeline.errors import in_words, is_slow_start

QUERY = """
=== Streaming Query ===
Identifier: shop.out [id = 3ffbb4ca-815b-4704-90d2-bef1fedecb04, runId = 8427cc15-a826-426f-890d-83e0aaf58922]
Current Committed Offsets: {}
Current Available Offsets: {PythonMicroBatchStream@32e44f20: {"shop-orders": {"0": 2, "1": 2, "2": 0}}}

Current State: ACTIVE
Thread State: RUNNABLE

Logical Plan:
WriteToMicroBatchDataSource headrace
+- ~CollectMetrics written, [count(1) AS rows#16L], 5
"""

IN_A_FUNCTION = f"""\
[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
  File "shop.py", line 36, in <lambda>
    return rows.select(F.udf(lambda x: str(1/0))("id").alias("id"))
                                           ~^~
ZeroDivisionError: division by zero
 SQLSTATE: 38000{QUERY}"""

RAISED = f"""\
[USER_RAISED_EXCEPTION] source orders: shop-orders-1 offset 1: it is not JSON \
SQLSTATE: P0001{QUERY}"""

OURS = f"""\
[PYTHON_DATA_SOURCE_ERROR] Failed to plan Python data source initialize source: \
Traceback (most recent call last):
  File "python_streaming_source_runner.py", line 258, in main
  File "datasource_internal.py", line 50, in _streamReader
    return datasource.streamReader(schema=schema)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
headrace.spark.errors.InvalidOption: option 'maxoffsetpertrigger': unknown; did you mean \
maxOffsetsPerTrigger?

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "python_streaming_source_runner.py", line 261, in main
pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_DATA_SOURCE_ERROR] {{}}
 SQLSTATE: 38000{QUERY}"""

OF_A_WRITER = f"""\
[PYTHON_DATA_SOURCE_ERROR] Failed to initialize Python data source writer: Traceback (most recent call last):
  File "source.py", line 91, in streamWriter
    return StreamWriter(self._sink(schema))
                        ^^^^^^^^^^^^^^^^^^
headrace.spark.sink_options.UnfitSchema: column 'value' is double, and has to be string or binary
 SQLSTATE: 38000{QUERY}"""

ANALYSIS = """\
[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `idd` cannot be \
resolved. Did you mean one of the following? [`id`, `price`, `_record`]. SQLSTATE: 42703;
'Project ['idd]
+- ~Project [id#142, price#143, _record#144]
"""

CONDITION, STATE = "[UNRESOLVED_COLUMN.WITH_SUGGESTION] ", " SQLSTATE: 42703;"

OF_JAVA = """\
org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.divideByZeroError(QueryExecutionErrors.scala:207)
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""

OF_PY4J = """\
An error occurred while calling o27.start.
: java.lang.IllegalStateException: the first
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.io.IOException: No space left on device
\t... 13 more
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (IN_A_FUNCTION, "ZeroDivisionError: division by zero (PYTHON_EXCEPTION)"),
        (RAISED, "source orders: shop-orders-1 offset 1: it is not JSON"),
        (OURS, "option 'maxoffsetpertrigger': unknown; did you mean maxOffsetsPerTrigger?"),
        (OF_A_WRITER, "column 'value' is double, and has to be string or binary"),
        (
            ANALYSIS,
            f"{ANALYSIS.splitlines()[0].removeprefix(CONDITION).removesuffix(STATE)} ({CONDITION[1:-2]})",
        ),
        (OF_JAVA, "Division by zero. (DIVIDE_BY_ZERO)"),
        (OF_PY4J, "No space left on device"),
        ("first line\nsecond line", "first line"),
    ],
)
def test_an_error_of_sparks_becomes_a_sentence(text: str, sentence: str) -> None:
    assert in_words(RuntimeError(text)) == sentence


def test_an_error_without_words_has_at_least_a_name() -> None:
    assert in_words(KeyboardInterrupt()) == "KeyboardInterrupt"


def test_a_python_process_that_starts_slowly_is_told_from_other_failures() -> None:
    assert is_slow_start(RuntimeError(f"Python worker failed to connect back.{QUERY}"))
    assert not is_slow_start(RuntimeError(IN_A_FUNCTION))


def test_an_error_of_a_worker_is_told_without_its_traceback() -> None:
    text = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "shop.py", line 7, in check
    raise ValueError(f"no {text} today")
ValueError: no 0 today
"""
    assert in_words(RuntimeError(text)) == "ValueError: no 0 today"
