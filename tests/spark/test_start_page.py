"""The Spark read of docs/start.md does what it says; the rest of the page is run in tests/cli."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.testing import Broker

PAGE = Path(__file__).parents[2] / "docs" / "start.md"


@pytest.mark.long
def test_spark_shows_the_orders(
    spark: SparkSession, headrace: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = re.findall(r"## Spark\n.*?```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    headrace.produce("orders", "tea", "coffee")

    exec(block.replace("127.0.0.1:9092", headrace.bootstrap), {})

    assert spark.active() is not None
    shown = capsys.readouterr().out
    assert "tea" in shown
    assert "coffee" in shown
