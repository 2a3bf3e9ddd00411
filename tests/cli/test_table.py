"""`headrace table` on tables that queries have written."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog

from cli.command import Result
from headrace.cli import main

ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})


class Headrace:
    """Runs commands in this process, which has imported the packages of the tables already."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capfd = monkeypatch, capfd

    def __call__(self, *arguments: str) -> Result:
        self._monkeypatch.setattr("sys.argv", ["headrace", *arguments])
        with pytest.raises(SystemExit) as end:
            main.main()
        out, err = self._capfd.readouterr()
        return Result(int(end.value.code or 0), out.encode(), err)


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Headrace:
    return Headrace(monkeypatch, capfd)


@pytest.fixture
def delta(tmp_path: Path) -> str:
    path = tmp_path / "table"
    for _ in range(3):
        write_deltalake(path, ROWS, mode="append")
    return str(path)


@pytest.fixture
def catalog(tmp_path: Path) -> list[str]:
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    opened = load_catalog("default", **settings)
    opened.create_namespace("shop")
    table = opened.create_table("shop.orders", ROWS.schema)
    for _ in range(3):
        table.append(ROWS)
    opened.close()
    return [part for name, value in settings.items() for part in ("--catalog", f"{name}={value}")]


def test_a_delta_table_is_shown_compacted_and_vacuumed(headrace: Headrace, delta: str) -> None:
    shown = headrace("table", "status", delta).text
    assert f"{delta}: Delta, version 2, 6 rows, 3 files (3 small)" in shown
    assert headrace("table", "status", delta, "--json").json["columns"] == {"id": "bigint", "name": "string"}

    assert headrace("table", "optimize", delta).text == f"{delta}: 3 files became 1\n"
    assert headrace("table", "optimize", delta).text == f"{delta}: no files to rewrite\n"
    assert headrace("table", "cluster", delta, "--by", "name, id").text == f"{delta}: 1 file became 1\n"
    assert sorted(DeltaTable(delta).to_pyarrow_table()["id"].to_pylist()) == [1, 1, 1, 2, 2, 2]
    assert headrace("table", "vacuum", delta).text == f"{delta}: 0 files, 0 B, would be removed, with --yes\n"
    assert headrace("table", "vacuum", delta, "--yes", "--json").json == {
        "files": [],
        "bytes": 0,
        "done": True,
    }


def test_an_iceberg_table_is_shown_compacted_and_expired(headrace: Headrace, catalog: list[str]) -> None:
    shown = headrace("table", "status", "shop.orders", *catalog, "--json").json
    assert (shown["format"], shown["files"], shown["rows"], shown["versions"]) == ("Iceberg", 3, 6, 3)
    assert headrace("table", "optimize", "shop.orders", *catalog).text == "shop.orders: 3 files became 1\n"

    expire = ("table", "expire", "shop.orders", *catalog, "--keep", "1", "--retain", "PT0S")
    assert headrace(*expire).text == "shop.orders: 3 snapshots would expire, with --yes; 1 kept\n"
    assert headrace(*expire, "--yes").text == "shop.orders: 3 snapshots expired; 1 kept\n"
    assert headrace("table", "status", "shop.orders", *catalog, "--json").json["versions"] == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("status", "/nowhere/at/all"), "the table /nowhere/at/all cannot be opened"),
        (("vacuum", "TABLE", "--retain", "PT1H"), "a retention of 1:00:00 is too short"),
        (("vacuum", "TABLE", "--retain", "soon"), "expected a duration such as"),
        (("expire", "TABLE"), "is a Delta table, which has no snapshots to expire"),
        (("cluster", "TABLE", "--by", "nothing"), "there is no column 'nothing'"),
        (("status", "TABLE", "--catalog", "uri=x"), "--catalog is for Iceberg tables"),
        (("status", "TABLE", "--storage", "x"), "--storage x: expected NAME=VALUE."),
    ],
)
def test_what_cannot_be_done_is_one_line(
    headrace: Headrace, delta: str, arguments: tuple[str, ...], sentence: str
) -> None:
    given = [delta if each == "TABLE" else each for each in arguments]
    assert sentence in headrace("table", *given).complaint
