"""An environment with all packages, used by a Python that has none."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

import pytest

from spark.pipeline_process import headrace

PIPELINE: Final = """
import prices
from headrace.pipeline import Delta, Json, Pipeline

shop = Pipeline("shop")
shop.source("orders", topic="orders", decode=Json("n bigint"))


@shop.sink(Delta("table"))
def kept(orders):
    return prices.dear(orders)
"""
# What executors import: the source, the sinks, and the compiled loops.
CODE: Final = """
import json, sys
sys.path.insert(0, "{pipeline}")
import headrace.tables.reader.walk, headrace.spark.tables.delta.log, headrace.pipeline.registry
import deltalake, pyarrow, prices
import pyspark_headrace_delta
modules = headrace.tables.reader.walk, deltalake, pyarrow, pyspark_headrace_delta
print(json.dumps([each.__file__ for each in modules]))
"""


@pytest.mark.long
def test_the_packed_packages_are_enough(tmp_path: Path) -> None:
    (tmp_path / "prices.py").write_text("def dear(orders):\n    return orders.where('n > 100')\n")
    (tmp_path / "shop.py").write_text(PIPELINE)
    said = json.loads(headrace(tmp_path, "pack", "shop.py", "-o", "shop.tar.gz", "--json"))
    assert said["bytes"] == (tmp_path / "shop.tar.gz").stat().st_size
    assert {"pyarrow", "numba", "deltalake"} <= set(said["packages"])

    environment = tmp_path / "moved" / "environment"
    with tarfile.open(tmp_path / "shop.tar.gz") as archive:
        archive.extractall(environment, filter="data")
    bare = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    import pyspark  # noqa: PLC0415

    # Spark adds its own packages to the path of workers.
    libraries = sorted(map(str, (Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip")))
    done = subprocess.run(
        [environment / "bin" / "python", "-c", CODE.format(pipeline=environment / "pipeline")],
        env={**os.environ, "HEADRACE_PYTHON": str(bare), "PYTHONPATH": os.pathsep.join(libraries)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert all(Path(each).is_relative_to(environment) for each in json.loads(done.stdout))
