"""deploy/compose and Containerfile: valid by the Compose specification, with settings that brokers accept."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]
from compose_spec import PyCompose

from headrace import __version__
from headrace.broker.settings.config import BrokerConfig
from headrace.cli.broker import COMMANDS
from headrace.cli.main import commands
from headrace.cli.support.session import Session

REPOSITORY: Final = Path(__file__).parents[3]
CONTAINERFILE: Final = (REPOSITORY / "Containerfile").read_text()
FILES: Final = {"one-broker": 1, "three-brokers": 3}
COMPOSE: Final[dict[str, dict[str, Any]]] = {
    name: yaml.safe_load((REPOSITORY / "deploy" / "compose" / f"{name}.yaml").read_text()) for name in FILES
}
each_file = pytest.mark.parametrize("name", FILES)


def brokers(name: str) -> dict[str, dict[str, Any]]:
    return {key: value for key, value in COMPOSE[name]["services"].items() if key.startswith("broker")}


def config(service: dict[str, Any]) -> BrokerConfig:
    return BrokerConfig.load(file=None, environment=service["environment"], sets={})


@each_file
def test_a_file_is_valid(name: str) -> None:
    assert len(PyCompose.from_json(json.dumps(COMPOSE[name])).service_names()) == 2 * FILES[name]
    assert len(brokers(name)) == FILES[name]


def test_a_file_with_a_wrong_field_is_not() -> None:
    wrong = {"services": {"a": {"image": "x", "depend_on": ["b"]}}}
    with pytest.raises(ValueError, match="depend_on"):
        PyCompose.from_json(json.dumps(wrong))


@each_file
def test_brokers_accept_their_settings_and_have_ids_of_their_own(name: str) -> None:
    found = [config(each) for each in brokers(name).values()]
    assert [each.number("broker.id") for each in found] == list(range(1, FILES[name] + 1))
    for each in found:
        assert each.number("default.replication.factor") == FILES[name]
        assert each.number("min.insync.replicas") == min(2, FILES[name])


@each_file
def test_every_address_leads_somewhere(name: str) -> None:
    services = COMPOSE[name]["services"]
    for key, service in brokers(name).items():
        zookeepers = service["environment"]["HEADRACE_ZOOKEEPER_CONNECT"].split(",")
        assert {each.partition(":")[0] for each in zookeepers} == set(services) - set(brokers(name))
        assert set(service["depends_on"]) == set(services) - set(brokers(name))
        advertised = dict(
            re.findall(r"(\w+)://([^,]+)", service["environment"]["HEADRACE_ADVERTISED_LISTENERS"])
        )
        assert advertised["INTERNAL"] == f"{key}:19092"
        port = advertised["EXTERNAL"].removeprefix("localhost:")
        assert f"127.0.0.1:{port}:{port}" in service["ports"]
        assert f"EXTERNAL://0.0.0.0:{port}" in service["environment"]["HEADRACE_LISTENERS"]


@each_file
def test_images_have_a_version_and_ours_is_this_one(name: str) -> None:
    images = {each["image"] for each in COMPOSE[name]["services"].values()}
    assert f"headrace:{__version__}" in images
    assert all(re.search(r":\d+\.\d+\.\d+$", each) for each in images)


@each_file
def test_zookeeper_deletes_old_snapshots(name: str) -> None:
    servers = [each for each in COMPOSE[name]["services"].values() if each["image"].startswith("zookeeper:")]
    assert len(servers) % 2 == 1
    assert all(int(each["environment"]["ZOO_AUTOPURGE_PURGEINTERVAL"]) > 0 for each in servers)


def test_ci_builds_the_image_that_compose_files_name() -> None:
    assert f"-t headrace:{__version__} ." in (REPOSITORY / ".github" / "workflows" / "ci.yml").read_text()


@each_file
def test_ports_are_published_to_this_machine_only(name: str) -> None:
    published = [port for each in brokers(name).values() for port in each["ports"]]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


@each_file
def test_data_is_in_volumes_of_the_image_and_the_controlled_shutdown_has_time(name: str) -> None:
    for service in brokers(name).values():
        (volume,) = service["volumes"]
        source, target = volume.split(":")
        assert source in COMPOSE[name]["volumes"]
        assert f"VOLUME {target}" in CONTAINERFILE
        assert service["environment"]["HEADRACE_LOG_DIRS"].startswith(f"{target}/")
        assert service["stop_grace_period"] == "2m"


@each_file
def test_the_health_check_asks_whether_this_broker_is_ready(name: str) -> None:
    for service in brokers(name).values():
        kind, program, *arguments = service["healthcheck"]["test"]
        assert (kind, program) == ("CMD", "headrace")
        assert arguments[-3:] == ["broker", "ready", service["environment"]["HEADRACE_BROKER_ID"]]
        commands.make_context("headrace", arguments[:-3], obj=Session(), resilient_parsing=True)
        assert "ready" in COMMANDS


def test_the_image_runs_as_a_user_of_its_own_and_checks_its_health() -> None:
    assert re.search(r"^USER 10001$", CONTAINERFILE, re.MULTILINE)
    assert "HEALTHCHECK" in CONTAINERFILE
    for copied in re.findall(r"^COPY (?!--from)(.*) \S+$", CONTAINERFILE, re.MULTILINE):
        for path in copied.split():
            assert (REPOSITORY / path).exists(), path
            assert f"!{path}\n" in (REPOSITORY / ".containerignore").read_text()


def _builder() -> list[str] | None:
    for program in ("podman", "docker"):
        if (
            shutil.which(program)
            and not subprocess.run([program, "info"], capture_output=True, check=False).returncode
        ):
            return [program]
    return None


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_image_is_built_and_runs_a_broker() -> None:
    builder = _builder()
    if builder is None:
        pytest.skip("neither podman nor docker can be used here")
    subprocess.run(
        [*builder, "build", "-f", "Containerfile", "-t", "headrace-test", "."], cwd=REPOSITORY, check=True
    )
    started = subprocess.run(
        [*builder, "run", "-d", "--rm", "headrace-test"], capture_output=True, text=True, check=True
    )
    container = started.stdout.strip()
    try:
        run = [*builder, "exec", container, "sh", "-c"]
        wait = "for i in $(seq 60); do headrace broker ready 1 && exit; sleep 1; done; exit 1"
        subprocess.run([*run, wait], check=True)
        consume = "headrace produce orders tea >/dev/null && headrace consume orders --exit-at-end"
        read = subprocess.run([*run, consume], capture_output=True, text=True, check=True)
        assert read.stdout == "tea\n"
    finally:
        subprocess.run([*builder, "stop", container], capture_output=True, check=False)
