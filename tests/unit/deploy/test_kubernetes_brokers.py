"""deploy/kubernetes/brokers.yaml: valid by Kubernetes' schemas, and right for a rolling restart."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]

from headrace import __version__
from headrace.broker.config import BrokerConfig
from headrace.properties import parse_properties

REPOSITORY: Final = Path(__file__).parents[3]
FILE: Final = REPOSITORY / "deploy" / "kubernetes" / "brokers.yaml"
VERSIONS: Final = ("1.30", kubernetes_validate.latest_version())
MANIFESTS: Final[Sequence[dict[str, Any]]] = list(yaml.safe_load_all(FILE.read_text()))
SHUTDOWN_S: Final = 120  # what `docs/clusters.md` allows for a controlled shutdown


def of_kind(kind: str, name: str = "headrace") -> dict[str, Any]:
    (found,) = (each for each in MANIFESTS if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


STATEFUL_SET: Final = of_kind("StatefulSet")["spec"]
POD: Final = STATEFUL_SET["template"]["spec"]
(CONTAINER,) = POD["containers"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_a_manifest_is_valid(manifest: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


def test_a_broker_accepts_its_settings() -> None:
    properties = of_kind("ConfigMap")["data"]["server.properties"]
    variables = {each["name"]: each.get("value", "0") for each in CONTAINER["env"]}
    environment = {
        name: value.replace("$(POD_NAME)", "headrace-0").replace("$(POD_NAMESPACE)", "logs")
        for name, value in variables.items()
        if name.startswith("HEADRACE_") and name != "HEADRACE_LOG_FORMAT"
    }
    file = parse_properties(properties, "server.properties")
    config = BrokerConfig.load(file=None, environment=environment, sets=file)
    assert config.number("broker.id") == 0
    assert "headrace-0.headrace.logs." in config.items("advertised.listeners")[0]
    assert {"POD_NAME", "POD_NAMESPACE"} <= variables.keys()
    assert any(
        config.items("log.dirs")[0].startswith(each["mountPath"]) for each in CONTAINER["volumeMounts"]
    )
    assert CONTAINER["args"][-1] == "/etc/headrace/server.properties"


def test_no_more_than_one_broker_is_down_and_it_has_time_to_hand_over() -> None:
    assert of_kind("PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert STATEFUL_SET["updateStrategy"] == {"type": "RollingUpdate"}
    assert POD["terminationGracePeriodSeconds"] > SHUTDOWN_S
    assert "preStop" not in CONTAINER.get("lifecycle", {})  # TERM starts the controlled shutdown


def test_a_broker_is_ready_when_its_replicas_are_in_sync() -> None:
    command = CONTAINER["readinessProbe"]["exec"]["command"]
    assert 'headrace broker ready "$HEADRACE_BROKER_ID"' in command[-1]
    assert "livenessProbe" not in CONTAINER


def test_brokers_find_each_other_before_they_are_ready_and_start_together() -> None:
    service = of_kind("Service")["spec"]
    assert service["clusterIP"] == "None"
    assert service["publishNotReadyAddresses"] is True
    assert STATEFUL_SET["serviceName"] == "headrace"
    assert STATEFUL_SET["podManagementPolicy"] == "Parallel"


def test_variables_of_services_are_not_taken_for_settings() -> None:
    assert POD["enableServiceLinks"] is False


def test_labels_connect_the_objects() -> None:
    labels = STATEFUL_SET["template"]["metadata"]["labels"]
    selectors = [
        STATEFUL_SET["selector"]["matchLabels"],
        of_kind("Service")["spec"]["selector"],
        of_kind("Service", "headrace-bootstrap")["spec"]["selector"],
        of_kind("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
    ]
    assert all(each.items() <= labels.items() for each in selectors)


def test_the_user_is_that_of_the_image() -> None:
    user = POD["securityContext"]["runAsUser"]
    group = POD["securityContext"]["runAsGroup"]
    assert f"--uid {user} --gid {group} " in (REPOSITORY / "Containerfile").read_text()
    assert CONTAINER["image"].endswith(f":{__version__}")
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"] is True
