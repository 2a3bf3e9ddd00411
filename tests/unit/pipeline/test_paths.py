"""Paths of sinks and of state: none on other storage becomes a directory of this machine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.pipeline import Delta, Parquet, PipelineError, Topic
from headrace.pipeline.storage.files import local_path, spark_url


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("tables/orders", f"{Path.cwd()}/tables/orders"),
        ("/data/orders", "/data/orders"),
        ("/data/a:/b", "/data/a:/b"),
        ("file:/data/orders", "/data/orders"),
        ("file:///data/orders", "/data/orders"),
        ("FILE:///data/orders", "/data/orders"),
        ("file://localhost/data/orders", "/data/orders"),
        ("file:///data/f\u00fcr 100%20", "/data/f\u00fcr 100%20"),
    ],
)
def test_a_path_of_this_machine_may_be_a_url(text: str, path: str) -> None:
    assert local_path(text) == Path(path)
    assert local_path(spark_url(Path(path))) == Path(path)


@pytest.mark.parametrize("url", ["s3a://bucket/orders", "hdfs:///orders", "abfss://c@account.example/orders"])
def test_other_storage_is_left_to_the_sink(url: str) -> None:
    assert local_path(url) is None
    assert Delta(url).format("h:1")[1]["path"] == url
    assert Parquet(url).format("h:1")[1]["path"] == url


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("file://tables/orders", "'tables' is the host of this URL; expected file:///tables/orders"),
        ("file:tables/orders", "begins with a slash"),
        ("s3a:/bucket/orders", "as in s3a://host/path"),
    ],
)
@pytest.mark.parametrize("make", [Delta, Parquet])
def test_a_url_that_is_none_is_refused(make: Callable[[str], Any], text: str, sentence: str) -> None:
    with pytest.raises(PipelineError, match=sentence):
        make(text)


def test_spark_writes_to_this_machine_whatever_its_default_file_system_is() -> None:
    assert Parquet("/data/orders").format("h:1")[1]["path"] == "file:///data/orders"
    assert Delta("file:///data/orders").format("h:1")[1]["path"] == "/data/orders"  # it is no part of Spark


@pytest.mark.parametrize(
    "make",
    [
        lambda: Parquet("files", options={"checkpointLocation": "s3a://bucket/checkpoint"}),
        lambda: Delta("table", options={"checkpointlocation": "s3a://bucket/checkpoint"}),
        lambda: Topic("alerts", options={"checkpointLocation": "s3a://bucket/checkpoint"}),
        lambda: Parquet("files", options={"path": "s3a://bucket/files"}),
    ],
)
def test_options_of_a_sink_do_not_say_where_things_are(make: Callable[[], Any]) -> None:
    with pytest.raises(PipelineError, match="cannot be set for a sink"):
        make()
