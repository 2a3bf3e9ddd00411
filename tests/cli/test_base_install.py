"""The commands without any extra: a real broker that only has what `pip install headrace` brings."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.base_install import environment
from support.process import ServerProcess

GATEWAY = "the packages of gateway and schema registry: pip install 'headrace[http]'"
JARS = "ZooKeeper's jar comes with pyspark, which is not installed: pip install 'headrace[spark]'"
LISTENER = ("--set", "http.listener=127.0.0.1:0", "--set", "zookeeper.connect=127.0.0.1:1")


def headrace(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headrace", *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def up_in(directory: Path, *options: str) -> ServerProcess:
    data = str(directory / "data")
    return ServerProcess(["up", "--data", data, "--port", "0", *options], directory / "up.log", environment())


def test_up_runs_a_broker_and_says_that_there_is_no_gateway(tmp_path: Path) -> None:
    with up_in(tmp_path, "--brokers", "2") as up:
        assert "console, schema registry and gateway are not installed: pip install" in up.log.read_text()
        target = ("--bootstrap", up.address)
        headrace(*target, "topic", "create", "orders", "--partitions", "2").check_returncode()
        headrace(*target, "produce", "orders", "tea", "--key", "a").check_returncode()
        assert headrace(*target, "consume", "orders", "--exit-at-end").stdout == "tea\n"
        grouped = headrace(*target, "consume", "orders", "--exit-at-end", "--group", "g")
        assert grouped.stdout == "tea\n", grouped.stderr
        assert "orders" in headrace(*target, "topic", "list").stdout
        assert not up.http


def test_a_broker_validates_schemas_without_the_registry(tmp_path: Path) -> None:
    with up_in(tmp_path) as up:
        target = ("--bootstrap", up.address)
        create = ("topic", "create", "checked", "--config", "confluent.value.schema.validation=true")
        headrace(*target, *create).check_returncode()
        refused = headrace(*target, "produce", "checked", "tea")
        assert refused.returncode == 1
        assert "schema validation" in refused.stderr
        assert " ERROR " not in up.log.read_text(), up.log_tail()


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["demo"], "headrace demo needs Spark: pip install 'headrace[spark]'"),
        (["pipeline", "check", "x.py"], "headrace pipeline check needs Spark: pip install 'headrace[spark]'"),
        (["pipeline", "run", "x.py"], "headrace pipeline run needs Spark: pip install 'headrace[spark]'"),
        (["table", "status", "x"], "headrace table needs Spark: pip install 'headrace[spark]'"),
        (["sql", "select 1"], "headrace sql needs DuckDB: pip install 'headrace[sql]'"),
        (["certs", "init"], "headrace certs needs cryptography: pip install 'headrace[security]'"),
        (["up", "--secure"], "headrace up --secure needs cryptography: pip install 'headrace[security]'"),
        (["gateway"], f"headrace gateway needs {GATEWAY}"),
        (["zookeeper"], JARS),
        (["zookeeper", "--tls"], JARS),
        (["up", "--zookeeper", "ensemble"], JARS),
        (["up", "--http-port", "0"], f"headrace up --http-port needs {GATEWAY}"),
        (["broker", *LISTENER], f"http.listener=127.0.0.1:0 needs {GATEWAY}"),
    ],
)
def test_a_missing_extra_is_reported_before_anything_starts(
    tmp_path: Path, command: list[str], sentence: str
) -> None:
    data = tmp_path / "data"
    match command[0]:
        case "up" | "zookeeper":
            command = [*command, "--data", str(data)]
        case "broker":
            command = [*command, "--set", f"log.dirs={data}"]
    ended = headrace(*command)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"headrace: {sentence}\n")
    assert not data.exists()


def test_the_help_of_a_command_that_needs_an_extra_says_so() -> None:
    ended = headrace("pipeline", "run", "--help")
    assert ended.returncode == 0
    assert "headrace pipeline run needs Spark: pip install 'headrace[spark]'" in ended.stdout


def test_it_is_reported_as_json_too() -> None:
    ended = headrace("pipeline", "check", "x.py", "--json")
    assert json.loads(ended.stderr) == {
        "error": "headrace pipeline check needs Spark: pip install 'headrace[spark]'"
    }
