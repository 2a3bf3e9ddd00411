"""The command that runs Apache ZooKeeper."""

from pathlib import Path

import pytest

from headrace.coordination.zookeeper import MAIN_CLASS, Ports, Server


def test_options_of_java_are_taken_from_the_variable_that_zookeeper_s_scripts_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports = [Ports(2181, 2888, 3888)]
    server = Server(["java", "-Xmx256m"], tmp_path, 1, host="127.0.0.1", ports=ports, tick_ms=2000)
    monkeypatch.setenv("SERVER_JVMFLAGS", "-Xmx1g '-Dname=a value'")
    command = server.prepare()
    assert command[0] == "java"
    assert command[-5:] == ["-Xmx256m", "-Xmx1g", "-Dname=a value", MAIN_CLASS, str(tmp_path / "zoo.cfg")]
