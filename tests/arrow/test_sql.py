"""`headrace sql` as a process: topics as tables, decoded by the registry, in every output format."""

import json
import os
import pty
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from cli.command import Command
from compat.kafka_tools.samples import Sample
from headrace import ConnectionSettings, NoSuchTopic, Unreachable
from headrace.client.schemas.registry import RegistryClient
from headrace.tables.sql.tables import QueryRefused, Topics, connected
from spark.topics import SIZES, plain, write
from support.plain_rows import consumed
from support.process import UpProcess
from wire.confluent import make_topic
from wire.requests import fresh_name

COUNTS = "select partition, count(*) as rows from skewed group by all order by all"
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "item", "type": "string"}, {"name": "price", "type": "double"}],
}


@pytest.fixture
def headrace(up: UpProcess) -> Command:
    return Command(up.bootstrap)


def test_a_table_is_printed(headrace: Command) -> None:
    result = headrace("sql", COUNTS)

    assert (result.status, result.err) == (0, "")
    assert result.text.splitlines() == [
        "partition  rows",
        "        0  2000",
        "        1    30",
        "        3     7",
    ]


def test_json_and_csv_have_a_line_for_each_row(headrace: Command) -> None:
    query = (
        'select key, value, "offset", headers, timestamp from shapes where partition = 2 order by "offset"'
    )
    rows = [row for row in consumed(headrace.bootstrap, "shapes") if row.partition == 2]

    found = [json.loads(line) for line in headrace("sql", query, "--json").out.splitlines()]
    lines = headrace("sql", f"select partition, key from ({COUNTS}), (select 'a,b' as key)", "--csv")

    assert [each["offset"] for each in found] == [row.offset for row in rows]
    assert [each["value"] for each in found] == [
        None if row.value is None else row.value.decode() for row in rows
    ]
    assert [each["timestamp"] for each in found] == [row.timestamp.isoformat() for row in rows]
    assert found[0]["headers"] == [
        {"key": "n", "value": "0"},
        {"key": "empty", "value": ""},
        {"key": "null", "value": None},
    ]
    assert lines.text.splitlines() == ["partition,key", '0,"a,b"', '1,"a,b"', '3,"a,b"']


@pytest.mark.parametrize("suffix", ["parquet", "csv", "json"])
def test_rows_are_written_to_a_file(headrace: Command, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows.{suffix}"
    result = headrace("sql", 'select "offset" from skewed where partition = 1', "-o", str(path))

    assert (result.status, result.text, result.err) == (0, f"30 rows in {path}\n", "")
    assert list(tmp_path.iterdir()) == [path]
    if suffix == "parquet":
        assert sorted(pq.read_table(path)["offset"].to_pylist()) == list(range(30))
    else:
        assert len(path.read_text().splitlines()) == 30 + (suffix == "csv")


def test_values_are_decoded_by_the_registry(headrace: Command, up: UpProcess, tmp_path: Path) -> None:
    topic = fresh_name("my-orders.eu")
    make_topic(up.bootstrap, topic)
    schema = tmp_path / "order.avsc"
    schema.write_text(json.dumps(SCHEMA))
    registry = ("--registry", up.http)
    assert headrace("schema", "register", f"{topic}-value", str(schema), *registry).status == 0
    (number,) = (
        each["id"] for each in headrace("schema", "list", *registry, "--json").json
        if each["subject"] == f"{topic}-value"
    )  # fmt: skip
    record = b"\0" + number.to_bytes(4) + b"\x06tea" + b"\0\0\0\0\0\0\xf8\x3f"
    samples = [Sample(key=b"k", value=record, timestamp_ms=1)]
    write(up.bootstrap, topic, samples)

    result = headrace(
        "sql", f'select value.item, value.price * 2 as double from "{topic}"', *registry, "--json"
    )
    assert result.json == {"item": "tea", "double": 3.0}
    raw = headrace("sql", f'select octet_length(value) as size from "{topic}"', "--decode", "bytes", "--json")
    assert raw.json == {"size": len(record)}


def test_a_name_with_a_dot_need_not_be_quoted(bootstrap: str) -> None:
    name = fresh_name("a.b").replace("-", "_")
    make_topic(bootstrap, name)
    write(bootstrap, name, plain(3))

    with connected() as connection:
        assert run(bootstrap, connection, f"select count(*) as n from {name} x") == [(3,)]


def test_a_limit_ends_the_output(headrace: Command) -> None:
    shown = headrace("sql", "select partition from skewed")
    assert len(shown.text.splitlines()) == 1001
    assert shown.err == "these are the first 1,000 rows; --limit N prints more\n"
    everything = headrace("sql", "select partition from skewed", "--limit", "5000")
    assert (len(everything.text.splitlines()), everything.err) == (1 + sum(SIZES), "")


def test_topics_are_joined_with_each_other_and_with_files(bootstrap: str, tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    file.write_text("number,name\n1,one\n3,three\n")
    query = f"""with counts as ({COUNTS}) select name, rows, (select count(*) from shapes) as shapes
        from counts join '{file}' on partition = number order by number"""

    shapes = len(consumed(bootstrap, "shapes"))
    with connected() as connection:
        assert run(bootstrap, connection, query) == [("one", 30, shapes), ("three", 7, shapes)]


MISTAKES = {
    "select * from nowhere": "there is no topic nowhere",
    "select wrong from skewed": 'Referenced column "wrong" not found',
    "selec": "syntax error at or near",
    "select offset from skewed": 'offset is a word of SQL: as a column it is written "offset"',
    "from skewed where partition = 0 and offset > 1": 'as a column it is written "offset"',
    "select 1; select 2": "Expected one query.",
    "create table x (a int)": "Expected a query that changes nothing.",
    "select * from session": "there is no topic session",  # nor a variable of the program
}


@pytest.mark.parametrize(("query", "sentence"), MISTAKES.items())
def test_mistakes_are_named(bootstrap: str, query: str, sentence: str) -> None:
    session = "a variable of the program, which is not a table"
    with connected() as connection, pytest.raises((QueryRefused, NoSuchTopic)) as refusal:
        run(bootstrap, connection, query)
    assert sentence in str(refusal.value), session


def run(
    bootstrap: str,
    connection: "duckdb.DuckDBPyConnection",
    query: str,
    registry: RegistryClient | None = None,
) -> list[Any]:
    topics = Topics(
        ConnectionSettings(bootstrap),
        lambda: registry,
        decode="auto",
        on_error="fail",
        progress=lambda _done, _label: None,
    )
    with topics.errors():
        return topics.query(connection, query).fetchall()


def test_a_mistake_is_one_line(headrace: Command) -> None:
    complaint = headrace("sql", "select * from skewd").complaint
    assert complaint == "there is no topic skewd; did you mean skewed?"


def test_topics_are_listed_as_tables(bootstrap: str) -> None:
    with connected() as connection:
        assert ("skewed",) in run(bootstrap, connection, "Show  tables;")


def test_a_registry_that_does_not_answer_is_no_reason_to_return_other_columns(bootstrap: str) -> None:
    registry = RegistryClient("http://127.0.0.1:1")
    with connected() as connection, pytest.raises(Unreachable) as refusal:
        run(bootstrap, connection, COUNTS, registry)
    assert str(refusal.value).startswith("no registry answers at http://127.0.0.1:1: connection refused")
    assert str(refusal.value).endswith("; --decode text or --decode bytes reads without it")


def test_a_topic_has_an_alias_and_may_be_named_twice(bootstrap: str) -> None:
    query = 'select count(*) from skewed a join skewed as b using (partition, "offset")'
    with connected() as connection:
        assert run(bootstrap, connection, query) == [(sum(SIZES),)]


def test_values_that_are_not_text_are_named(headrace: Command) -> None:
    topic = fresh_name("bytes")
    make_topic(headrace.bootstrap, topic)
    write(headrace.bootstrap, topic, [Sample(key=None, value=b"\xff", timestamp_ms=1)])

    complaint = headrace("sql", f'select value from "{topic}"').complaint
    assert complaint.startswith(f"the value of {topic}-0 offset 0 cannot be decoded: it is not UTF-8")
    assert complaint.endswith("--decode bytes, --on-error null or --on-error skip would continue")
    assert headrace("sql", f'select value from "{topic}"', "--on-error", "null", "--json").json == {
        "value": None
    }
    raw = headrace("sql", f'select value from "{topic}"', "--decode", "bytes", "--json")
    assert raw.json == {"value": {"base64": "/w=="}}


def test_a_query_without_topics_needs_no_cluster(tmp_path: Path) -> None:
    nowhere = Command("127.0.0.1:1")
    (tmp_path / "prices.csv").write_text("item,price\ntea,2\n")
    assert nowhere("sql", "select 1 as one", "--json").json == {"one": 1}
    assert nowhere("sql", f"select item from '{tmp_path}/prices.csv'", "--json").json == {"item": "tea"}
    assert "no broker answers at 127.0.0.1:1" in nowhere("sql", "select * from orders").complaint


def test_values_of_several_types_are_printed(headrace: Command, tmp_path: Path) -> None:
    assert headrace("sql", "select union_value(a := 1) as it", "--json").json == {"it": 1}
    complaint = headrace(
        "sql", "select union_value(a := 1) as it", "-o", str(tmp_path / "it.parquet")
    ).complaint
    assert complaint.startswith("The rows cannot be written as Parquet: ")
    assert list(tmp_path.iterdir()) == []


def test_queries_are_read_from_a_pipe(headrace: Command) -> None:
    assert headrace("sql", "--json", stdin=b"select 40 + 2 as answer;\n").json == {"answer": 42}


def test_queries_are_typed_at_a_terminal_which_remembers_them(headrace: Command, tmp_path: Path) -> None:
    def typed(text: str) -> str:
        ours, theirs = pty.openpty()
        environment = headrace.environment | {"XDG_STATE_HOME": str(tmp_path), "TERM": "dumb"}
        with subprocess.Popen(
            headrace.arguments("sql"), stdin=theirs, stdout=theirs, stderr=theirs, env=environment
        ) as process:
            os.close(theirs)
            output = bytearray()
            while b"headrace> " not in output:  # only then the terminal passes on every key
                output += os.read(ours, 4096)
            os.write(ours, text.encode())
            with suppress(OSError):  # the end of a terminal is an error on Linux
                while part := os.read(ours, 4096):
                    output += part
            assert process.wait(60) == 0, output
        os.close(ours)
        return output.decode()

    output = typed("show tables;\nselect 40\n  + 2 as answer;\nselect offset from skewed;\nfrom skewd;\n\x04")
    assert "skewed" in output
    assert re.search(r"answer[^;]*42", output)
    assert 'as a column it is written "offset"' in output
    assert "headrace: there is no topic skewd; did you mean skewed?" in output
    history = tmp_path / "headrace" / "sql_history"
    assert "select 40\n  + 2 as answer;\n" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0
    assert "there is no topic skewd" in typed("\x10\nexit\n")  # Ctrl-P is the line before


# DuckDB returns the first row of the second query only when it has all of them.
@pytest.mark.parametrize("query", ["select 1 as one union all ({})", "{}"], ids=["streamed", "aggregated"])
def test_ctrl_c_ends_a_long_query(headrace: Command, query: str) -> None:
    forever = "select count(*) as one from skewed a, skewed b, skewed c, skewed d where a.value != d.value"
    arguments = headrace.arguments("sql", "--csv", query.format(forever))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(arguments, env=headrace.environment, **pipes) as process:  # type: ignore[call-overload]
        try:
            assert process.stdout.readline() == b"one\n"  # the query is planned, and starts
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()

    assert (process.returncode, said.strip()) == (130, b"")
