"""The recipe for a Spark job in docs/testing.md does what it says."""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace.testing import Broker

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


@pytest.mark.long
def test_a_spark_job_can_be_tested_with_a_broker_in_the_same_process(
    spark: SparkSession, headrace: Broker
) -> None:
    (block,) = re.findall(
        r"```python\n(import pytest\nfrom pyspark.*?)```", PAGE.read_text("utf-8"), re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(block, names)

    names["test_items_are_counted"](spark, headrace)
