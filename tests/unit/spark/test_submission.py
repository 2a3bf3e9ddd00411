"""The arguments of spark-submit, by kind of cluster, and the environment of executors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.spark.errors import SparkError
from headrace.spark.submission import Submission, absolute, is_archive, python_of, use_environment

CONF = Path("/tmp/settings.conf")
COMMON = [
    "--deploy-mode",
    "cluster",
    "--name",
    "shop",
    "--properties-file",
    str(CONF),
    "--load-spark-defaults",
]


def submission(master: str, environment: str, **settings: str) -> Submission:
    return Submission(
        name="shop",
        master=master,
        environment=environment,
        program="/here/driver.py",
        arguments=["shop.py", "--state", "s3a://bucket/state"],
        settings=settings,
        supervise=True,
    )


def test_yarn_copies_the_archive_and_the_driver() -> None:
    assert submission("yarn", "hdfs:///env/shop.tar.gz").command(CONF) == [
        *("--master", "yarn"),
        *COMMON,
        *("--archives", "hdfs:///env/shop.tar.gz#environment"),
        *("/here/driver.py", "shop.py", "--state", "s3a://bucket/state"),
    ]


def test_kubernetes_finds_the_environment_in_its_image() -> None:
    assert submission("k8s://https://k:6443", "/opt/shop/").command(CONF) == [
        *("--master", "k8s://https://k:6443"),
        *COMMON,
        *("local:///opt/shop/driver.py", "shop.py", "--state", "s3a://bucket/state"),
    ]


def test_a_standalone_cluster_runs_the_driver_as_a_java_class_and_supervises_it() -> None:
    assert submission("spark://h:7077", "/opt/shop").command(CONF) == [
        *("--master", "spark://h:7077"),
        *COMMON,
        *("--supervise", "--class", "org.apache.spark.deploy.PythonRunner", "file:/opt/shop/driver.jar"),
        *("/opt/shop/driver.py", "", "shop.py", "--state", "s3a://bucket/state"),
    ]


def test_what_a_master_cannot_do_is_refused() -> None:
    with pytest.raises(SparkError, match="unpack it to a directory that all workers have"):
        submission("spark://h:7077", "shop.tar.gz").command(CONF)
    with pytest.raises(SparkError, match=r"--deploy-mode cluster needs --master .* not local"):
        submission("local[*]", "/opt/shop").command(CONF)


def test_settings_are_in_a_file_and_not_in_arguments() -> None:
    given = submission("yarn", "shop.tar.gz", **{"spark.hadoop.fs.s3a.secret.key": "a\\b\nc"})
    assert given.properties() == (
        "spark.pyspark.python ./environment/bin/python\nspark.hadoop.fs.s3a.secret.key a\\\\b\\nc\n"
    )
    assert not any("secret" in each for each in given.command(CONF))
    assert "a\\b" not in repr(given)


@pytest.mark.parametrize(
    ("environment", "archive", "python"),
    [
        ("shop.tar.gz", True, "./environment/bin/python"),
        ("s3a://bucket/shop.TGZ", True, "./environment/bin/python"),
        ("/opt/shop/", False, "/opt/shop/bin/python"),
    ],
)
def test_an_environment_is_an_archive_or_a_directory(environment: str, archive: bool, python: str) -> None:
    assert is_archive(environment) is archive
    assert python_of(environment) == python


def test_with_an_archive_one_name_is_the_python_of_driver_and_executors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    settings = use_environment(absolute("shop.tar.gz"))

    assert settings["spark.archives"] == f"{Path.cwd()}/shop.tar.gz#environment"
    assert absolute("s3a://bucket/shop.tar.gz") == "s3a://bucket/shop.tar.gz"
    assert settings["spark.executorEnv.PATH"].startswith("./environment/bin:")
    command = [os.environ["PYSPARK_PYTHON"], "-c", "import sys; print(sys.executable)"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert said.strip() == sys.executable


def test_a_directory_has_the_same_path_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "")
    assert use_environment("/opt/shop") == {}
    assert os.environ["PYSPARK_PYTHON"] == "/opt/shop/bin/python"
