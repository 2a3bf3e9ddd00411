"""Spark's home as the launcher prepares it."""

import sys
from pathlib import Path

import pytest

from headrace.spark import launcher


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package pyspark."""
    package = tmp_path / "site-packages" / "pyspark"
    for name in ("bin", "jars", "python/lib", "python/pyspark"):
        (package / name).mkdir(parents=True)
    for name in ("__init__.py", "python/lib/pyspark.zip", "bin/spark-submit"):
        (package / name).touch()
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    return package


def test_spark_home_has_everything_but_the_archive(installed: Path, cache: Path) -> None:
    home = launcher.spark_home()

    assert home is not None
    assert home.is_relative_to(cache)
    assert (home / "bin" / "spark-submit").samefile(installed / "bin" / "spark-submit")
    assert sorted(str(each.relative_to(home)) for each in home.glob("python/*")) == ["python/pyspark"]
    assert launcher.spark_home() == home


def test_the_home_that_the_user_has_set_is_kept(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(installed))

    assert launcher.spark_home() is None


def test_without_the_archive_spark_finds_its_home_itself(installed: Path) -> None:
    (installed / "python" / "lib" / "pyspark.zip").unlink()

    assert launcher.spark_home() is None
