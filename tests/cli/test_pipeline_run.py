"""A pipeline from `init` to its second run, as somebody would who has just installed Headrace."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from deltalake import DeltaTable

from cli.command import Command, Result
from cli.secure_up import Secured, administrator
from headrace.pipeline.progress import TOPIC
from support.process import UpProcess

PATIENCE_S: Final = 400  # a session of Spark's starts in seconds, and in minutes where all cores are busy


def slowly(headrace: Command, *arguments: str) -> Result:
    """A command that starts Spark."""
    done = subprocess.run(
        headrace.arguments(*arguments),
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        env=headrace.environment,
    )
    return Result(done.returncode, done.stdout, done.stderr.decode())


@contextmanager
def running(headrace: Command, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        headrace.arguments(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=headrace.environment,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def read_until(process: subprocess.Popen[str], wanted: str) -> list[str]:
    """The lines it prints up to one that begins with `wanted`."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.strip())
        if line.startswith(wanted):
            return lines
    raise AssertionError(f"it has ended without {wanted!r}: {lines}")


def stored(path: Path) -> list[str]:
    """The ids of the rows in the table."""
    return sorted(DeltaTable(str(path)).to_pyarrow_table(columns=["id"]).column("id").to_pylist())


def consumed(headrace: Command, topic: str) -> list[str]:
    return headrace.ok("consume", topic, "--exit-at-end").text.splitlines()


@pytest.mark.long
def test_a_pipeline_from_init_to_its_second_run(headrace: Command, tmp_path: Path) -> None:
    headrace.ok("pipeline", "init", "mill", "--directory", str(tmp_path))
    file = str(tmp_path / "mill.py")

    wrong = slowly(headrace, "pipeline", "check", file)
    assert wrong.status == 1
    assert wrong.err == f"headrace: {file}: 1 problem\n"
    assert "wrong  source orders: there is no topic 'mill-orders'" in wrong.text
    headrace.ok("topic", "create", "mill-orders", "--partitions", "3")
    orders = ('{"id": "1", "price": 2.5}', '{"id": "2", "price": 250}', "no order")
    headrace.ok("produce", "mill-orders", *orders)
    right = slowly(headrace, "pipeline", "check", file)
    assert (right.status, right.err) == (0, "")
    assert {line.split()[0] for line in right.text.splitlines()} == {"ok"}

    first = slowly(headrace, "pipeline", "run", file, "--once")
    assert (first.status, first.err) == (0, "")
    assert "created topic mill-large-orders: 3 partitions" in first.text
    assert "mill.alerts ended: 1 batch, 3 rows in, 1 out, lag 0" in first.text
    assert "mill.orders.dead-letters ended: 1 batch, 3 rows in, 1 out, lag 0" in first.text
    assert stored(tmp_path / "mill-table") == ["1", "2"]
    (status,) = headrace.ok("pipeline", "status", file, "--json").json
    assert (status["state"], status["pid"], len(status["queries"])) == ("ended", None, 3)

    headrace.ok("produce", "mill-orders", '{"id": "3", "price": 300}')
    with running(headrace, "pipeline", "run", file) as process:
        read_until(process, "mill.archive batch 1: 1 row in, 1 out")
        assert headrace.ok("pipeline", "status", file, "--json").json[0]["pid"] == process.pid
        slowly(headrace, "pipeline", "stop", file)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, err) == (0, "")
        assert "mill.archive ended: 1 batch, 1 row in, 1 out, lag 0" in out

    assert stored(tmp_path / "mill-table") == ["1", "2", "3"]
    assert consumed(headrace, "mill-large-orders") == ['{"id":"2","price":250.0}', '{"id":"3","price":300.0}']
    assert consumed(headrace, "mill-orders.dead-letters") == ["no order"]
    (group,) = headrace.ok("group", "describe", "mill.archive", "--json").json
    assert group["total_lag"] == 0


RECORDS = """{"id": "1", "price": 2.5}
{"id": "2", "price": 250}
no order
"""


@pytest.mark.long
def test_a_pipeline_is_tried_on_records_of_a_file(headrace: Command, tmp_path: Path) -> None:
    headrace.ok("pipeline", "init", "mill", "--directory", str(tmp_path))
    (tmp_path / "rows.jsonl").write_text(RECORDS)
    arguments = ("pipeline", "test", str(tmp_path / "mill.py"), "--input", f"orders={tmp_path}/rows.jsonl")

    shown = slowly(headrace, *arguments, "--bootstrap", "127.0.0.1:1")
    assert (shown.status, shown.err) == (0, "")
    lines = shown.text.splitlines()
    assert {"source orders: 2 rows", "source orders: 1 record cannot be decoded"} <= set(lines)
    assert "no order  it is not JSON" in lines
    assert "sink alerts, to topic mill-large-orders: 1 row" in lines

    found = slowly(headrace, *arguments, "--bootstrap", "127.0.0.1:1", "--json").json
    assert found["steps"]["alerts"] == [{"id": "2", "item": None, "price": 250.0}]
    assert found["bad"] == {"orders": [{"value": "no order", "reason": "it is not JSON"}]}
    assert not (tmp_path / "mill-table").exists()


def users_file(admin: Secured, name: str, password: str) -> Secured:
    """The user of a pipeline with the ACLs that docs/pipelines.md names."""
    admin.ok("user", "add", name, "--password-file", "-", stdin=password.encode())
    for resource in ("--topic", "--group", "--transactional-id"):
        for prefix in (name, "headrace-spark-"):
            admin.ok("acl", "allow", f"User:{name}", resource, prefix, "--prefixed")
    admin.ok("acl", "allow", f"User:{name}", "--topic", TOPIC)
    return admin.as_user(name, password)


@pytest.mark.long
def test_a_pipeline_on_a_secured_cluster_leaves_its_password_nowhere(tmp_path: Path) -> None:
    password, data = "Yx3-the-password-of-the-mill", tmp_path / "project"
    with UpProcess(tmp_path / "up", arguments=["--secure"]) as up:
        admin = administrator(up)
        user = users_file(admin, "mill", password)
        user.ok("pipeline", "init", "mill", "--directory", str(data))
        file = str(data / "mill.py")
        user.ok("topic", "create", "mill-orders", "--partitions", "3")
        user.ok(
            "produce", "mill-orders", '{"id": "1", "price": 2.5}', '{"id": "2", "price": 250}', "no order"
        )

        planned = slowly(user, "pipeline", "explain", file)
        run = slowly(user, "pipeline", "run", file, "--once")

        assert (planned.status, run.status) == (0, 0), planned.err + run.err
        assert "mill.alerts ended: 1 batch, 3 rows in, 1 out, lag 0" in run.text
        assert stored(data / "mill-table") == ["1", "2"]
        assert consumed(user, "mill-large-orders") == ['{"id":"2","price":250.0}']
        assert consumed(user, "mill-orders.dead-letters") == ["no order"]

        other = admin.as_user("mill-without", password)
        stranger = slowly(other, "pipeline", "run", file, "--once")
        assert stranger.status == 1
        assert "refuses mill-without" in stranger.err

        said = [each.text + each.err for each in (planned, run, stranger)]
        written = [each for root in (data, up.data) for each in root.rglob("*") if each.is_file()]
        checkpoints = [each for each in written if each.parent.name == "offsets"]
        assert checkpoints
        assert not [each for each in said if password in each]
        assert not [
            str(each) for each in written if holds(each, password) and each not in (user.file, other.file)
        ]


def holds(path: Path, text: str) -> bool:
    try:
        return text.encode() in path.read_bytes()
    except FileNotFoundError:
        return False
