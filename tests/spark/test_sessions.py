"""Pipelines in sessions of a notebook, of spark-submit and of Spark Connect."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pyspark
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from headrace.pipeline import Delta, Json, Pipeline
from headrace.spark.launcher import prepare
from spark.connect_server import connect_server
from spark.pipeline_process import HEADRACE, write_numbers
from wire.confluent import make_topic
from wire.process import BrokerProcess

pytestmark = pytest.mark.extended

TOPIC: Final = "session-numbers"
PROGRAM: Final = """
from headrace.pipeline import Delta, Json, Pipeline

numbers = Pipeline("numbers")
numbers.source("given", topic="{topic}", decode=Json("n bigint"))


@numbers.sink(Delta({table!r}))
def kept(given):
    return given.select("n")

"""
AS_A_PROGRAM: Final = """
if __name__ == "__main__":
    numbers.run(bootstrap="{bootstrap}", state={state!r}, once=True)
"""


def rows(table: Path) -> list[int]:
    found: list[int] = DeltaTable(str(table)).to_pyarrow_table()["n"].to_pylist()
    return sorted(found)


def test_a_pipeline_runs_in_the_session_of_a_notebook(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    numbers = Pipeline("numbers")
    numbers.source("given", topic=TOPIC, decode=Json("n bigint"), bad_rows="drop")

    @numbers.sink(Delta(str(tmp_path / "table")))
    def kept(given: DataFrame) -> DataFrame:
        return given.select("n")

    make_topic(broker.bootstrap, TOPIC, partitions=2)
    write_numbers(broker.bootstrap, TOPIC, range(100))
    numbers.run(spark, bootstrap=broker.bootstrap, state=tmp_path / "state", once=True)
    assert rows(tmp_path / "table") == list(range(100))
    assert spark.range(1).count() == 1  # it is still the notebook's

    write_numbers(broker.bootstrap, TOPIC, range(100, 150))
    numbers.run(spark, bootstrap=broker.bootstrap, state=tmp_path / "state", once=True)
    assert rows(tmp_path / "table") == list(range(150))


@pytest.mark.long
def test_a_pipeline_runs_as_a_program_of_spark_submit(broker: BrokerProcess, tmp_path: Path) -> None:
    topic = f"{TOPIC}-submitted"
    make_topic(broker.bootstrap, topic, partitions=2)
    write_numbers(broker.bootstrap, topic, range(100))
    text = PROGRAM.format(topic=topic, table=str(tmp_path / "table"))
    text += AS_A_PROGRAM.format(bootstrap=broker.bootstrap, state=str(tmp_path / "state"))
    (tmp_path / "shop.py").write_text(text)
    prepare()
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    subprocess.run(
        [submit, "--master", "local[2]", "--conf", f"spark.pyspark.python={sys.executable}", "shop.py"],
        cwd=tmp_path,
        env=dict(os.environ),
        check=True,
    )
    assert rows(tmp_path / "table") == list(range(100))


@pytest.mark.long
def test_a_pipeline_runs_on_spark_connect(broker: BrokerProcess, tmp_path: Path) -> None:
    topic = f"{TOPIC}-connect"
    make_topic(broker.bootstrap, topic, partitions=2)
    write_numbers(broker.bootstrap, topic, range(100))
    (tmp_path / "numbers.py").write_text(PROGRAM.format(topic=topic, table=str(tmp_path / "table")))
    at = ("--bootstrap", broker.bootstrap)
    said = []
    with connect_server(tmp_path) as url:
        for _ in range(2):  # the second run continues, and finds nothing new
            done = subprocess.run(
                [HEADRACE, *("pipeline", "run", "numbers.py", "--once"), *("--master", url), *at],
                cwd=tmp_path,
                env=dict(os.environ),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            said.append(done.stdout)
    assert rows(tmp_path / "table") == list(range(100))
    assert "numbers.kept ended: 1 batch, 100 rows in, 100 out, lag 0" in said[0]
    assert "numbers.kept ended: 0 batches, 0 rows in, 0 out" in said[1]
