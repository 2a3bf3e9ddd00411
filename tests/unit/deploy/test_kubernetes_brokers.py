"""deploy/kubernetes/brokers.yaml, gateway.yaml: valid by Kubernetes' schemas, right for a rolling restart.

tests/cli/test_kubernetes.py runs brokers and a gateway with what the manifests say.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]

from headrace import __version__
from headrace.broker.settings.config import BrokerConfig
from headrace.cli.broker import RESERVED
from headrace.client.properties import parse_properties

REPOSITORY: Final = Path(__file__).parents[3]
FILE: Final = REPOSITORY / "deploy" / "kubernetes" / "brokers.yaml"
VERSIONS: Final = ("1.30", kubernetes_validate.latest_version())
MANIFESTS: Final[Sequence[dict[str, Any]]] = [
    *yaml.safe_load_all(FILE.read_text()),
    *yaml.safe_load_all(FILE.with_name("gateway.yaml").read_text()),
]
SHUTDOWN_S: Final = 120  # what `docs/clusters.md` allows for a controlled shutdown


def of_kind(kind: str, name: str = "headrace") -> dict[str, Any]:
    (found,) = (each for each in MANIFESTS if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


STATEFUL_SET: Final = of_kind("StatefulSet")["spec"]
POD: Final = STATEFUL_SET["template"]["spec"]
(CONTAINER,) = POD["containers"]
GATEWAY: Final = of_kind("Deployment", "headrace-gateway")["spec"]["template"]


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
        if name.startswith("HEADRACE_") and name not in RESERVED
    }
    file = parse_properties(properties, "server.properties")
    config = BrokerConfig.load(file=None, environment=environment, sets=file)
    assert config.number("broker.id") == 0
    assert config.items("advertised.listeners") == (
        "INSIDE://headrace-0.headrace.logs.svc:9091",
        "CLIENTS://headrace-0.headrace.logs.svc:9092",
    )
    assert {"POD_NAME", "POD_NAMESPACE"} <= variables.keys()
    services = {each["metadata"]["name"] for each in MANIFESTS if each["kind"] == "Service"}
    assert urlsplit(config.text("http.advertised.url")).hostname == "headrace-gateway.logs.svc"
    assert "headrace-gateway" in services
    assert any(
        config.items("log.dirs")[0].startswith(each["mountPath"]) for each in CONTAINER["volumeMounts"]
    )
    assert CONTAINER["args"][-1] == "/etc/headrace/server.properties"


def test_the_domain_of_the_cluster_does_not_matter() -> None:
    for file in ("brokers.yaml", "gateway.yaml", "pipeline.yaml"):
        assert "cluster.local" not in FILE.with_name(file).read_text()


def test_a_network_policy_admits_clients_by_a_label_and_brokers_alone_to_the_inner_listener() -> None:
    client = {"headrace-client": "true"}
    brokers, clients = of_kind("NetworkPolicy")["spec"]["ingress"]
    assert brokers["from"] == [{"podSelector": {"matchLabels": {"app": "headrace"}}}]
    assert clients["from"] == [{"namespaceSelector": {}, "podSelector": {"matchLabels": client}}]
    assert clients["ports"] == [{"port": "kafka"}]
    assert {each["name"] for each in CONTAINER["ports"]} == {each["port"] for each in brokers["ports"]}
    (to_gateway,) = of_kind("NetworkPolicy", "headrace-gateway")["spec"]["ingress"]
    assert to_gateway["from"] == clients["from"]
    pipeline = [*yaml.safe_load_all(FILE.with_name("pipeline.yaml").read_text())]
    (driver,) = (each["spec"]["template"] for each in pipeline if each["kind"] == "Deployment")
    assert client.items() <= GATEWAY["metadata"]["labels"].items()
    assert client.items() <= driver["metadata"]["labels"].items()
    executors = "--set=spark.kubernetes.executor.label.headrace-client=true"
    assert executors in driver["spec"]["containers"][0]["args"]


def test_the_gateway_does_not_have_the_key_of_the_brokers() -> None:
    """The subject of the brokers' certificate is a super user."""
    secrets = [
        {each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
        for pod in (POD, GATEWAY["spec"])
    ]
    assert secrets == [{"headrace-tls"}, {"headrace-gateway-tls"}]


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
        of_kind("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(each.items() <= labels.items() for each in selectors)
    of_gateway = [
        of_kind("Deployment", "headrace-gateway")["spec"]["selector"]["matchLabels"],
        of_kind("Service", "headrace-gateway")["spec"]["selector"],
        of_kind("NetworkPolicy", "headrace-gateway")["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(each.items() <= GATEWAY["metadata"]["labels"].items() for each in of_gateway)


@pytest.mark.parametrize("pod", [POD, GATEWAY["spec"]], ids=["broker", "gateway"])
def test_the_user_is_that_of_the_image(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    user, group = pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]
    assert f"--uid {user} --gid {group} " in (REPOSITORY / "Containerfile").read_text()
    assert container["image"].endswith(f":{__version__}")
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
