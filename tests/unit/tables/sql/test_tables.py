"""The tables that a query names, by DuckDB's own parser."""

import json
from contextlib import closing

import duckdb
import pytest

from headrace.tables.sql.tables import tables_of

QUERIES: dict[str, list[tuple[str, ...]]] = {
    "select 1": [],
    'select * from orders o join "my-topic" as m using (key)': [("my-topic",), ("orders",)],
    'from "a.b", a.b, "x""y", c.d.e': [("a", "b"), ("a.b",), ("c", "d", "e"), ('x"y',)],
    "with w as (select * from t) select * from w, w as v": [("t",)],
    "select (select max(x) from a) from b where exists (from c) union all from d": [
        ("a",),
        ("b",),
        ("c",),
        ("d",),
    ],
    "describe orders": [("orders",)],
    "select * from range(5), 'file.parquet'": [("file.parquet",)],
    "select 'from nothing' -- from nobody": [],
}


@pytest.mark.parametrize(("query", "tables"), QUERIES.items())
def test_tables_are_found(query: str, tables: list[tuple[str, ...]]) -> None:
    with closing(duckdb.connect()) as connection:
        ((parsed,),) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchall()

    assert tables_of(json.loads(parsed)) == tables
