"""Where Spark's Python workers import pyspark from."""

from pathlib import Path

from headrace.spark.daemon import without_archive


def installation(root: Path) -> str:
    archive = root / "pyspark" / "python" / "lib" / "pyspark.zip"
    archive.parent.mkdir(parents=True)
    archive.touch()
    return str(archive)


def test_the_archive_of_the_installed_package_is_left_out(tmp_path: Path) -> None:
    archive = installation(tmp_path / "site-packages")
    path = [archive, "/usr/lib/python3", str(tmp_path / "site-packages")]

    assert without_archive(path) == path[1:]


def test_it_is_left_out_if_one_path_to_it_has_a_link(tmp_path: Path) -> None:
    archive = installation(tmp_path / "site-packages")
    (tmp_path / "link").symlink_to(tmp_path / "site-packages")

    assert without_archive([archive, str(tmp_path / "link")]) == [str(tmp_path / "link")]


def test_the_archive_of_another_spark_is_kept(tmp_path: Path) -> None:
    installation(tmp_path / "site-packages")
    path = [installation(tmp_path / "spark"), str(tmp_path / "site-packages")]

    assert without_archive(path) == path
