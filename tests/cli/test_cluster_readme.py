"""What the README says of clusters, run as it is written."""

import os
import re
import subprocess
import sys
from pathlib import Path

from cli.command import TIMEOUT_S, Command
from headrace.broker.config import BrokerConfig
from headrace.testing.process import ClusterProcess

README = Path(__file__).parents[2] / "README.md"
SECTION = README.read_text("utf-8").partition("## Clusters")[2].partition("\n## ")[0]


def test_the_commands_for_clusters_work_as_written(tmp_path: Path) -> None:
    server, commands = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
    assert server.startswith("headrace up --brokers 3 --data ")
    with ClusterProcess(tmp_path) as cluster:
        before = cluster.members["broker-1"]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-ec", commands],
            env=Command(cluster.bootstrap).environment | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=2 * TIMEOUT_S,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), done
        lines = done.stdout.splitlines()
        assert {"one", "two", "three", "four", "five"} <= set(lines)
        assert "1 of 1 partitions have moved" in lines
        assert cluster.wait_for_member("broker-1", but=before)


def test_the_settings_for_three_machines_are_settings(tmp_path: Path) -> None:
    (properties,) = re.findall(r"```properties\n(.*?)```", SECTION, re.DOTALL)
    file = tmp_path / "server.properties"
    file.write_text(properties)
    config = BrokerConfig.load(file=file, sets={})
    assert (config.broker_id, config.rack, str(config.advertised[0])) == (
        1,
        "a",
        "PLAINTEXT://one.example.com:9092",
    )
