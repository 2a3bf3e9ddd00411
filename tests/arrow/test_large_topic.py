"""Queries that end before a large topic is read: the process ends, too, and not with a crash."""

import json
import signal
import subprocess
import sys

import pytest
from confluent_kafka import Producer

from cli.command import Command
from wire.confluent import make_topic, settings

TOPIC = "million"
ROWS = 1_000_000
UNDECODABLE = f"the value of {TOPIC}-0 offset {ROWS} cannot be decoded: it is not UTF-8"
# The connection is still open when the interpreter exits.
UNCLOSED = f"""
import duckdb, headrace.duckdb
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
rows = headrace.duckdb.relation("{TOPIC}", connection=connection, readers=%d)
"""
LIMIT = "print(len(rows.limit(3).fetchall()))"
FIRST_BATCH = "reader = rows.to_arrow_reader(3); print(reader.read_next_batch().num_rows)"


@pytest.fixture(scope="module")
def headrace(bootstrap: str) -> Command:
    """Commands on a cluster with a topic whose last record is not text."""
    make_topic(bootstrap, TOPIC, partitions=1)
    producer = Producer(settings(bootstrap, linger_ms=20, queue_buffering_max_messages=2 * ROWS))
    for number in range(ROWS):
        producer.produce(TOPIC, b"%d" % number)
    producer.produce(TOPIC, b"\xff")
    assert producer.flush(60) == 0
    return Command(bootstrap)


def ended(headrace: Command, *arguments: str) -> tuple[int, bytes, bytes]:
    run = subprocess.run(  # not forked: the exit of a whole interpreter is the subject
        arguments, env=headrace.environment, capture_output=True, timeout=120, check=False
    )
    return run.returncode, run.stdout, run.stderr


@pytest.mark.parametrize("output", ["--json", "--csv"])
def test_a_limit_ends_the_command(headrace: Command, output: str) -> None:
    query = f"select value from {TOPIC} limit 3"
    status, out, err = ended(headrace, *headrace.arguments("sql", query, output))

    assert (status, len(out.splitlines()), err) == (0, 3 if output == "--json" else 4, b"")


@pytest.mark.parametrize("use", [LIMIT, FIRST_BATCH], ids=["limit", "first batch"])
@pytest.mark.parametrize("readers", [1, 2])
def test_a_connection_need_not_be_closed(headrace: Command, use: str, readers: int) -> None:
    status, out, err = ended(headrace, sys.executable, "-c", UNCLOSED % readers + use)

    assert (status, out, err) == (0, b"3\n", b"")


def test_an_exception_of_the_program_is_what_ends_it(headrace: Command) -> None:
    program = UNCLOSED % 1 + FIRST_BATCH + "; raise ValueError('of the program')"
    status, out, err = ended(headrace, sys.executable, "-c", program)

    assert (status, out) == (1, b"3\n")
    assert err.endswith(b"ValueError: of the program\n")


def test_a_record_that_cannot_be_read_is_named(headrace: Command) -> None:
    query = f"select count(value) as texts from {TOPIC}"
    status, out, err = ended(headrace, *headrace.arguments("sql", query, "--json"))
    assert (status, out) == (1, b"")
    assert json.loads(err)["error"].startswith(UNDECODABLE), err

    program = UNCLOSED.replace("readers=%d", 'schema="text"') + "rows.aggregate('count(value)').fetchall()"
    status, out, err = ended(headrace, sys.executable, "-c", program)
    assert (status, out) == (1, b"")
    assert UNDECODABLE.encode() in err


@pytest.mark.parametrize("end", ["Ctrl-C", "broken pipe"])
def test_the_command_ends_while_it_prints(headrace: Command, end: str) -> None:
    arguments = headrace.arguments("sql", "--csv", f"select value from {TOPIC}")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(arguments, env=headrace.environment, **pipes) as process:  # type: ignore[call-overload]
        try:
            assert [process.stdout.readline() for _ in range(2)] == [b"value\n", b"0\n"]
            if end == "Ctrl-C":
                process.send_signal(signal.SIGINT)
                _, said = process.communicate(timeout=60)
            else:
                process.stdout.close()
                said = process.stderr.read()
                process.wait(60)
        finally:
            process.kill()

    assert (process.returncode, said.strip()) == (130 if end == "Ctrl-C" else 1, b"")
