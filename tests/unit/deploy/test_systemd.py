"""The units of deploy/systemd: valid for systemd, and with commands that exist."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from headrace.broker.settings.config import BrokerConfig
from headrace.cli.main import commands
from headrace.cli.support.session import Session
from headrace.client.properties import parse_properties

DIRECTORY: Final = Path(__file__).parents[3] / "deploy" / "systemd"
UNITS: Final = sorted(DIRECTORY.glob("*.service"))
PROGRAM: Final = "/opt/headrace/bin/headrace"
each_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)


def settings(unit: Path) -> dict[str, str]:
    lines = [line for line in unit.read_text().splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.partition("=")[::2] for line in lines)


def test_there_are_units_for_broker_coordinator_and_zookeeper() -> None:
    assert [unit.stem for unit in UNITS] == ["headrace-broker", "headrace-coordinator", "headrace-zookeeper"]


@each_unit
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_nothing_wrong(unit: Path, tmp_path: Path) -> None:
    """The program is not installed here, which is all that systemd may complain about."""
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace(PROGRAM, sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False
    )
    complaints = [line for line in done.stderr.splitlines() if unit.name in line]
    assert complaints == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_what_is_wrong(tmp_path: Path) -> None:
    copy = tmp_path / UNITS[0].name
    copy.write_text(
        UNITS[0].read_text().replace(PROGRAM, sys.executable).replace("KillMode=mixed", "KillMode=mixd")
    )
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False
    )
    assert "mixd" in done.stderr


@each_unit
def test_the_command_has_options_that_exist(unit: Path, tmp_path: Path) -> None:
    program, name, *arguments = shlex.split(settings(unit)["ExecStart"])
    assert program == PROGRAM
    file = tmp_path / "server.properties"
    file.touch()
    context = commands.make_context("headrace", [], obj=Session(), resilient_parsing=True)
    command = commands.get_command(context, name)
    assert command is not None
    given = [str(file) if each.endswith(".properties") else each for each in arguments]
    command.make_context(name, given, obj=Session())


@each_unit
def test_a_unit_may_only_write_to_its_own_directory(unit: Path) -> None:
    found = settings(unit)
    assert found["ProtectSystem"] == "strict"
    assert found["ReadWritePaths"] == f"/var/lib/{found['StateDirectory']}"
    assert found["User"] == "headrace"
    assert found["NoNewPrivileges"] == "yes"


@each_unit
def test_a_unit_is_started_when_it_says_so(unit: Path) -> None:
    """tests/cli/test_systemd.py has the notifications of each command."""
    assert settings(unit)["Type"] == "notify"


def test_recovery_and_the_controlled_shutdown_of_a_broker_have_time() -> None:
    assert settings(DIRECTORY / "headrace-broker.service")["TimeoutStartSec"] == "30min"  # not 90 s
    assert int(settings(DIRECTORY / "headrace-broker.service")["TimeoutStopSec"]) >= 120


def test_the_example_is_a_valid_configuration() -> None:
    example = DIRECTORY / "server.properties"
    config = BrokerConfig.of(parse_properties(example.read_text(), str(example)))
    assert config.items("log.dirs") == ("/var/lib/headrace",)
