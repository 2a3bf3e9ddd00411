"""The Kubernetes manifests of `deploy/`: valid by Kubernetes' schema, with arguments of the command."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]

from headrace.cli.pipeline.run import run
from headrace.cli.support.session import Session, pairs
from headrace.spark.submission import DRIVER

FILE: Final = Path(__file__).parents[3] / "deploy" / "kubernetes" / "pipeline.yaml"
VERSIONS: Final = ("1.30", kubernetes_validate.latest_version())
MANIFESTS: Final[Sequence[dict[str, Any]]] = list(yaml.safe_load_all(FILE.read_text()))


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = (each for each in MANIFESTS if each["kind"] == kind)
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda each: each["kind"])
def test_a_manifest_is_valid(manifest: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


def test_a_manifest_with_a_misspelt_field_is_not() -> None:
    manifest = of_kind("Deployment")
    wrong = {**manifest, "spec": {**manifest["spec"], "replica": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_the_driver_has_arguments_of_the_command(tmp_path: Path) -> None:
    container = of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert container["command"][1].endswith(f"/{DRIVER}")
    client = tmp_path / "client.properties"
    client.touch()
    given = [each.replace("/etc/headrace/client.properties", str(client)) for each in container["args"]]
    parsed = run.make_context("run", given, obj=Session()).params
    assert parsed["master"].startswith("k8s://")
    brokers = yaml.safe_load_all(FILE.with_name("brokers.yaml").read_text())
    services = {each["metadata"]["name"] for each in brokers if each["kind"] == "Service"}
    (bootstrap,) = (each for each in container["args"] if each.startswith("--bootstrap="))
    assert bootstrap.removeprefix("--bootstrap=").removesuffix(":9092") in services
    assert parsed["root"] == "s3a://example-bucket/state"

    settings = pairs(parsed["settings"], "--set")
    ports = {each["name"]: each["port"] for each in of_kind("Service")["spec"]["ports"]}
    assert settings["spark.driver.host"] == of_kind("Service")["metadata"]["name"]
    assert int(settings["spark.driver.port"]) == ports["driver"]
    assert int(settings["spark.driver.blockManager.port"]) == ports["blocks"]
    assert settings["spark.kubernetes.container.image"] == container["image"]
    account = of_kind("ServiceAccount")["metadata"]["name"]
    assert settings["spark.kubernetes.authenticate.serviceAccountName"] == account


def test_labels_connect_the_objects() -> None:
    deployment, service = of_kind("Deployment")["spec"], of_kind("Service")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert service["selector"].items() <= labels.items()
    assert deployment["selector"]["matchLabels"].items() <= labels.items()
    binding = of_kind("RoleBinding")
    assert binding["roleRef"]["name"] == of_kind("Role")["metadata"]["name"]
