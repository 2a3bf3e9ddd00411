"""deploy/kubernetes as it runs, with processes instead of pods: settings, certificates, probes and users."""

import base64
import json
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import yaml  # type: ignore[import-untyped]

from headrace.system.ports import reserved
from support.process import ServerProcess, clean_environment

DIRECTORY: Final = Path(__file__).parents[2] / "deploy" / "kubernetes"
BROKERS: Final = 3
NAME: Final = "$(POD_NAME).headrace.$(POD_NAMESPACE).svc"
ZOOKEEPER: Final = ",".join(f"zookeeper-{each}.zookeeper:2181" for each in range(3))
BROKER_HOSTS: Final = ("*.headrace.logs.svc", "headrace-bootstrap", "headrace-bootstrap.logs.svc")
GATEWAY_HOSTS: Final = ("headrace-gateway", "headrace-gateway.logs.svc")
WAIT_S: Final = 60


def manifests(file: str) -> dict[tuple[str, str], dict[str, Any]]:
    found = yaml.safe_load_all((DIRECTORY / file).read_text())
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


class Pod:
    """A pod of a manifest: its files in a directory, its variables, and its addresses on loopback."""

    def __init__(self, root: Path, name: str, replace: dict[str, str], variables: dict[str, str]) -> None:
        root.mkdir()
        self._replace = {"/etc/headrace-tls": str(root / "tls"), "/var/lib/headrace": str(root), **replace}
        self._replace["/etc/headrace"] = str(root)
        objects = manifests("gateway.yaml" if name == "headrace-gateway" else "brokers.yaml")
        kind = "Deployment" if name == "headrace-gateway" else "StatefulSet"
        (container,) = objects[kind, name]["spec"]["template"]["spec"]["containers"]
        for each, text in objects["ConfigMap", name]["data"].items():
            (root / each).write_text(self.here(text))
        self.environment = {
            each["name"]: self.here(each["value"]) if "value" in each else variables[each["name"]]
            for each in container["env"]
        }
        self.container = container
        arguments = [self.here(each) for each in container["args"]]
        self.process = ServerProcess(arguments, root / "pod.log", self.environment)

    def here(self, text: str) -> str:
        for old, new in self._replace.items():
            text = text.replace(old, new)
        return text

    def execute(self, *command: str, stdin: str = "") -> str:
        """Run a command in the pod, as `kubectl exec` and probes do."""
        environment = clean_environment() | self.environment
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        done = subprocess.run(
            command, input=stdin, env=environment, capture_output=True, text=True, check=False, timeout=WAIT_S
        )
        assert done.returncode == 0, done
        return done.stdout


class Cluster:
    """What docs/clusters.md makes: certificates, brokers, the first users, a gateway."""

    def __init__(self, root: Path, ports: list[int], zookeeper: str) -> None:
        self.certificates = root / "certs"
        self._run("certs", "init", "--dir", str(self.certificates))
        self._certificate("headrace", BROKER_HOSTS)
        self._certificate("headrace-gateway", GATEWAY_HOSTS)
        inside, outside = ports[:BROKERS], ports[BROKERS : 2 * BROKERS]
        self.brokers = [
            self._pod(
                root / f"headrace-{index}",
                "headrace",
                {
                    "0.0.0.0": "127.0.0.1",
                    NAME: "127.0.0.1",
                    ":9091": f":{inside[index]}",
                    ":9092": f":{outside[index]}",
                    ZOOKEEPER: zookeeper,
                },
                {"HEADRACE_BROKER_ID": str(index), "HEADRACE_BROKER_RACK": rack},
            )
            for index, rack in enumerate(("zone-a", "zone-b", ""))
        ]
        self.bootstrap = f"127.0.0.1:{outside[0]}"
        self.gateway = self._pod(
            root / "headrace-gateway",
            "headrace-gateway",
            {"=0.0.0.0": "=127.0.0.1", "=8443": "=0", "headrace-bootstrap:9092": self.bootstrap},
            {"GATEWAY_PASSWORD": "a password of the gateway"},
        )
        self.password = ""

    def start(self) -> None:
        for each in self.brokers:
            each.process.start()
        first = self.brokers[0]
        added = first.execute("headrace", "user", "add", "admin", "--generate", "--json")
        self.password = json.loads(added)["password"]
        secret = self.gateway.environment["GATEWAY_PASSWORD"]
        first.execute("headrace", "user", "add", "gateway", "--password-file", "-", stdin=secret)
        first.execute("headrace", "acl", "allow", "gateway", "--topic", "_schemas")
        self.gateway.process.start()

    def trusting(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.certificates / "ca.pem"))

    def get(self, path: str, user: str | None = None, password: str = "", host: str = "") -> str:
        request = Request(f"{self.gateway.process.http}{path}")
        if user is not None:
            token = base64.b64encode(f"{user}:{password}".encode()).decode()
            request.add_header("Authorization", f"Basic {token}")
        if host:
            request.add_header("Host", host)
        with urlopen(request, timeout=WAIT_S, context=self.trusting()) as answer:
            return str(answer.read().decode())

    def _pod(self, root: Path, name: str, replace: dict[str, str], variables: dict[str, str]) -> Pod:
        known = {"POD_NAME": root.name, "POD_NAMESPACE": "logs", **variables}
        pod = Pod(root, name, {**replace, "$(POD_NAMESPACE)": "logs"}, known)
        (root / "tls").mkdir()
        shutil.copy(self.certificates / f"{name}.pem", root / "tls" / "tls-combined.pem")
        shutil.copy(self.certificates / "ca.pem", root / "tls" / "ca.crt")
        return pod

    def _certificate(self, name: str, hosts: tuple[str, ...]) -> None:
        options = [f"--host={each}" for each in hosts]
        self._run("certs", "server", "--dir", str(self.certificates), "--name", name, *options)

    @staticmethod
    def _run(*arguments: str) -> None:
        subprocess.run([sys.executable, "-m", "headrace", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    root = tmp_path_factory.mktemp("kubernetes")
    coordinator = ["coordinator", f"--data={root / 'coordinator'}", "--port=0", "--no-sync"]
    with ExitStack() as stack:
        zookeeper = stack.enter_context(ServerProcess(coordinator, root / "coordinator.log"))
        ports = stack.enter_context(reserved("127.0.0.1", 0, 2 * BROKERS))
        made = Cluster(root, ports, zookeeper.address)
        for each in (*made.brokers, made.gateway):
            stack.callback(each.process.kill)
        made.start()
        yield made


def test_every_broker_becomes_ready(cluster: Cluster) -> None:
    for index, each in enumerate(cluster.brokers):
        probe = each.container["readinessProbe"]["exec"]["command"]
        assert f"broker {index} is ready" in each.execute(*probe)


def test_racks_are_zones_where_there_are_zones(cluster: Cluster) -> None:
    found = json.loads(cluster.brokers[0].execute("headrace", "broker", "list", "--json"))
    assert [each["rack"] for each in found] == ["zone-a", "zone-b", None]


@pytest.mark.parametrize("host", ["headrace-2.headrace.logs.svc", "headrace-bootstrap"])
def test_the_certificate_of_brokers_is_valid_for_their_names(cluster: Cluster, host: str) -> None:
    address, _, port = cluster.bootstrap.partition(":")
    with (
        socket.create_connection((address, int(port)), WAIT_S) as plain,
        cluster.trusting().wrap_socket(plain, server_hostname=host) as secured,
    ):
        assert secured.version() is not None


def test_the_administrator_produces_and_consumes_with_a_password(cluster: Cluster, tmp_path: Path) -> None:
    client = tmp_path / "client.properties"
    client.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.username=admin\nsasl.password={cluster.password}\n"
        f"ssl.ca.location={cluster.certificates / 'ca.pem'}\n"
    )
    options = ["--bootstrap", cluster.bootstrap, "--command-config", str(client)]
    run = cluster.brokers[0].execute
    run("headrace", *options, "topic", "create", "orders", "--partitions", "3")
    run("headrace", *options, "produce", "orders", "tea")
    assert run("headrace", *options, "consume", "orders", "--exit-at-end") == "tea\n"


def test_the_gateway_is_healthy_and_serves_users_of_the_cluster(cluster: Cluster) -> None:
    container = cluster.gateway.container
    for probe in (container["livenessProbe"], container["readinessProbe"]):
        assert probe["httpGet"]["scheme"] == "HTTPS"
        assert "status" in cluster.get(probe["httpGet"]["path"])
    with pytest.raises(HTTPError, match="401"):
        cluster.get("/subjects")
    assert cluster.get("/subjects", "admin", cluster.password, host="headrace-gateway.logs.svc") == "[]"


def test_a_user_with_few_rights_may_read_the_metrics(cluster: Cluster) -> None:
    run = cluster.brokers[0].execute
    run("headrace", "user", "add", "prometheus", "--password-file", "-", stdin="a password of prometheus")
    run("headrace", "topic", "create", "payments")
    describe = ("--cluster", "--topic", "*", "--group", "*", "--operation", "describe")
    run("headrace", "acl", "allow", "prometheus", *describe)
    metrics = cluster.get("/metrics", "prometheus", "a password of prometheus")
    assert "kafka_brokers 3.0" in metrics
    assert 'kafka_topic_partitions{topic="payments"} 1.0' in metrics
