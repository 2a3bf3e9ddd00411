"""franz-go, Go's Kafka client, over TLS with every SASL mechanism, and with a certificate of its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from compat.registry_clients.programs import ClientUnavailable, Program, go_program
from headrace import Admin
from headrace.security.acls import AclBinding, AclEntry, PatternType, PermissionType, ResourcePattern
from headrace.security.authorization import Operation, ResourceType
from headrace.security.sasl.exchange import SCRAM_SHA_256, SCRAM_SHA_512
from support.certificates import Authority
from wire.certificate_files import Files
from wire.issuer import ISSUER, Issuer
from wire.requests import fresh_name
from wire.secured import LOGIN, SecuredCluster, secured_cluster

SOURCE: Final = Path(__file__).parent / "secured_clients" / "go"
PREFIX: Final = "go."
SCRAM_PASSWORD: Final = "through the looking-glass"
MECHANISMS: Final = ("PLAIN", SCRAM_SHA_256, SCRAM_SHA_512, "OAUTHBEARER", "a certificate")
MUTUAL: Final = 2  # the listener with certificates of clients


@dataclass(frozen=True)
class Go:
    """The program, and a cluster that guards topics and groups which begin with PREFIX."""

    program: Program
    cluster: SecuredCluster
    files: Files
    issuer: Issuer

    def access(self, mechanism: str, **more: str) -> dict[str, Any]:
        """What a question says about the connection."""
        own = str(self.files.root / "alice.pem")
        users: dict[str, dict[str, str]] = {
            "PLAIN": {"password": "wonderland"},
            "OAUTHBEARER": {"token": self.issuer.token("alice")},
            "a certificate": {"mechanism": "", "certificate": own, "key": own},
        }
        address = self.cluster.brokers[0].address.split(",")[MUTUAL if mechanism == "a certificate" else 1]
        user = users.get(mechanism, {"password": SCRAM_PASSWORD})
        ca = str(self.files.root / "trusted.pem")
        return {"bootstrap": address, "mechanism": mechanism, "user": "alice", "ca": ca} | user | more


@pytest.fixture(scope="module")
def go(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Go]:
    try:
        program = go_program(SOURCE)
    except ClientUnavailable as reason:
        pytest.skip(str(reason))
    root = tmp_path_factory.mktemp("franz-go")
    files, issuer = Files(root, Authority("headrace tests")), Issuer(root / "jwks.json")
    files.write("alice")
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,CLIENTS://127.0.0.1:0,MUTUAL://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,CLIENTS:SASL_SSL,MUTUAL:SSL",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": f"PLAIN,{SCRAM_SHA_256},{SCRAM_SHA_512},OAUTHBEARER",
        "sasl.jaas.config": LOGIN,
        "sasl.oauthbearer.jwks.endpoint.url": issuer.path.as_uri(),
        "sasl.oauthbearer.expected.audience": "headrace",
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.write("broker")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.trusted),
        "listener.name.mutual.ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:broker",
        "group.initial.rebalance.delay.ms": "0",
    }
    with secured_cluster(root, settings, brokers=1) as cluster, program:
        allow_alice(cluster, files)
        yield Go(program, cluster, files, issuer)


def allow_alice(cluster: SecuredCluster, files: Files) -> None:
    """Create the SCRAM user, and ACLs for the principals of the password and of the certificate."""
    broker = {
        **files.client(),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "broker",
        "sasl.password": "inside",
    }
    acls = [
        AclBinding(
            ResourcePattern(kind, PREFIX, PatternType.PREFIXED),
            AclEntry(principal, "*", Operation.ALL, PermissionType.ALLOW),
        )
        for kind in (ResourceType.TOPIC, ResourceType.GROUP)
        for principal in ("User:alice", "User:CN=alice")
    ]
    with Admin(cluster.bootstrap, broker) as admin:
        admin.create_user("alice", SCRAM_PASSWORD, mechanisms=(SCRAM_SHA_256, SCRAM_SHA_512))
        admin.create_acls(acls)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_it_administers_produces_and_consumes_in_a_group(go: Go, mechanism: str) -> None:
    access = go.access(mechanism)
    names = {"topic": fresh_name(f"{PREFIX}topic"), "group": fresh_name(f"{PREFIX}group")}
    values = [str(each) for each in range(20)]

    def ask(verb: str, **more: Any) -> Any:
        return go.program.ask({"verb": verb, **access, **names, **more})

    assert ask("create") == 3
    assert ask("produce", values=values) == 20
    assert sorted(ask("consume", count=20), key=int) == values
    assert ask("groups") == 20
    assert ask("delete") == names["topic"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_it_is_told_what_no_acl_allows(go: Go, mechanism: str) -> None:
    question = {"verb": "create", **go.access(mechanism), "topic": fresh_name("forbidden")}
    with pytest.raises(AssertionError, match="TOPIC_AUTHORIZATION_FAILED"):
        go.program.ask(question)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_credential_is_refused(go: Go, mechanism: str) -> None:
    stranger = str(go.files.write("stranger", authority=Authority("somebody else")))
    wrong: dict[str, dict[str, str]] = {
        "OAUTHBEARER": {"token": go.issuer.token(aud="another")},
        "a certificate": {"certificate": stranger, "key": stranger},
    }
    access = go.access(mechanism, **wrong.get(mechanism, {"password": "guessed"}))
    with pytest.raises(
        AssertionError, match=r"(?i)SASL_AUTHENTICATION_FAILED|certificate authority|oauth|closed|reset"
    ):
        go.program.ask({"verb": "create", **access, "topic": fresh_name(f"{PREFIX}topic")})


def test_it_does_not_trust_another_authority(go: Go) -> None:
    other = go.files.root / "other.pem"
    other.write_text(Authority("somebody else").certificate)
    question = {"verb": "create", **go.access("PLAIN", ca=str(other)), "topic": f"{PREFIX}topic"}
    with pytest.raises(AssertionError, match="unknown authority"):
        go.program.ask(question)
