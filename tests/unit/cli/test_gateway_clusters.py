"""--cluster of `headrace gateway`: a name, and a file or brokers."""

from pathlib import Path

import pytest

from headrace.cli.gateway import _connections
from headrace.client.errors import BadSetting


def test_a_cluster_is_a_file_or_brokers(tmp_path: Path) -> None:
    file = tmp_path / "prod.properties"
    file.write_text("bootstrap.servers=one:9092,two:9092\nsecurity.protocol=PLAINTEXT\n")
    found = _connections([f"prod={file}", "test=10.0.0.1:9092"])
    assert {name: each.bootstrap for name, each in found.items()} == {
        "prod": "one:9092,two:9092",
        "test": "10.0.0.1:9092",
    }


def test_what_is_no_cluster_is_refused_with_a_sentence(tmp_path: Path) -> None:
    empty = tmp_path / "empty.properties"
    empty.write_text("security.protocol=PLAINTEXT\n")
    for given, why in (
        (["prod"], "--cluster prod: expected NAME=FILE or NAME=HOST:PORT"),
        (["prod="], "expected NAME=FILE or NAME=HOST:PORT"),
        (["a b=one:9092"], "'a b' cannot be the name of a cluster"),
        (["x=one:9092", "x=two:9092"], "--cluster x is given twice"),
        ([f"x={empty}"], "has no bootstrap.servers"),
    ):
        with pytest.raises(BadSetting, match=why.replace("(", r"\(")):
            _connections(given)
