"""A client certificate alone: the gateway acts for its principal with a delegation token."""

import base64
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from cluster.waiting import until
from headrace.client.admin.acls import AclAdmin
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.client.wire.security import Security
from headrace.gateway.serving import Served, serve_in_thread
from headrace.protocol.schema.describe_delegation_token import DescribeDelegationTokenRequest
from headrace.protocol.schema.expire_delegation_token import ExpireDelegationTokenRequest
from headrace.security import authorization as ours
from headrace.security.acls import AclBinding as AclBindingOfOurs
from headrace.security.acls import AclEntry, PermissionType, ResourcePattern
from headrace.security.tls import TlsSettings
from support.certificates import Authority, Identity
from wire.guarded import guarded_cluster, user
from wire.requests import fresh_name
from wire.secured import SecuredCluster, sasl_cluster

TIMEOUT_S: Final = 30
HOSTS: Final = ("127.0.0.1", "localhost")
JSON_V2: Final = "application/vnd.kafka.json.v2+json"
RULES: Final = "RULE:^CN=mapped-(.*)$/$1/,DEFAULT"
CAROL: Final = "User:CN=carol"
LIFETIME_S: Final = 4.0  # of the tokens of a cluster whose tokens expire soon


class Files:
    """The CA of the gateway's clients, and certificates by their names."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._authority = Authority("gateway's clients")
        self.ca = self._write("ca", self._authority.certificate)
        self.gateway = self.client("gateway")

    def client(self, name: str) -> str:
        return self._identity(name, self._authority.certify(name, HOSTS))

    def expired(self, name: str) -> str:
        return self._identity(f"{name}-expired", self._authority.certify(name, ended=timedelta(hours=1)))

    def of_stranger(self, name: str) -> str:
        return self._identity(f"{name}-unknown", Authority("somebody else").certify(name))

    def _identity(self, file: str, made: Identity) -> str:
        return self._write(file, made.key + made.certificate)

    def _write(self, name: str, text: str) -> str:
        path = self._root / f"{name}.pem"
        path.write_text(text)
        return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with guarded_cluster(tmp_path_factory.mktemp("guarded"), brokers=2) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster: SecuredCluster) -> AdminClient:
    return AdminClient(user(cluster, "admin"))


def gateway(
    cluster: SecuredCluster, files: Files, settings: dict[str, Any], client_auth: str = "requested"
) -> AbstractContextManager[Served]:
    """A gateway that connects to brokers with these settings."""
    tls = TlsSettings.of(
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": files.gateway,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": files.ca,
            "ssl.client.auth": client_auth,
        }
    )
    return serve_in_thread(
        cluster.bootstrap,
        security=Security.of(settings),
        authentication=True,
        password_mechanism="PLAIN",
        tls=tls,
        principal_mapping_rules=RULES,
    )


@pytest.fixture(scope="module")
def url(cluster: SecuredCluster, files: Files) -> Iterator[str]:
    with gateway(cluster, files, user(cluster, "admin")) as served:
        yield served.url


class Client:
    """Somebody with a certificate and nothing else."""

    def __init__(self, url: str, files: Files, certificate: str) -> None:
        self._url = url
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify, self._session.cert = files.ca, certificate

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        at = f"{self._url}{path}"
        return self._session.request(method, at, json=body, headers=given, timeout=TIMEOUT_S)

    def produce(self, topic: str, *values: Any) -> requests.Response:
        records = {"records": [{"value": each} for each in values]}
        return self("POST", f"/topics/{topic}", records, content_type=JSON_V2)

    def values(self, topic: str) -> list[str]:
        found = self("GET", f"/api/v1/topics/{topic}/messages?last=10")
        assert found.status_code == 200, found.text
        return sorted(each["value"] for each in found.json()["messages"])

    @contextmanager
    def consumer(self, topic: str) -> Iterator[Callable[[], list[Any]]]:
        """Yield a function that reads records with a consumer which the gateway keeps."""
        made = self(
            "POST",
            f"/consumers/{topic}",
            {"format": "json", "auto.offset.reset": "earliest"},
            content_type="application/vnd.kafka.v2+json",
        )
        assert made.status_code == 200, made.text
        at = f"/consumers/{topic}/instances/{made.json()['instance_id']}"
        self("POST", f"{at}/subscription", {"topics": [topic]}, content_type="application/vnd.kafka.v2+json")

        def read() -> list[Any]:
            answer = self("GET", f"{at}/records?timeout=500", accept=JSON_V2)
            assert answer.status_code == 200, answer.text
            return [each["value"] for each in answer.json()]

        yield read
        self("DELETE", at, content_type="application/vnd.kafka.v2+json")


@pytest.fixture
def carol(url: str, files: Files) -> Client:
    return Client(url, files, files.client("carol"))


def topic_of(admin: AdminClient, *allowed: str, operations: tuple[str, ...] = ("READ", "WRITE")) -> str:
    """Create a topic and a group of the same name that these principals may use."""
    name = fresh_name("certified")
    admin.create_topics([NewTopic(name, 1, 1)])[name].result()
    for principal in allowed:
        for operation in operations:
            allow(admin, principal, ResourceType.TOPIC, name, operation)
        allow(admin, principal, ResourceType.GROUP, name, "READ")
    return name


def allow(admin: AdminClient, principal: str, kind: ResourceType, name: str, operation: str) -> None:
    binding = AclBinding(
        kind,
        name,
        ResourcePatternType.LITERAL,
        principal,
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )
    admin.create_acls([binding])[binding].result()


def brokers_of(cluster: SecuredCluster, name: str = "admin") -> Brokers:
    return Brokers(ConnectionSettings(cluster.bootstrap, Security.of(user(cluster, name))))


def tokens(cluster: SecuredCluster, owner: str, name: str = "admin") -> list[Any]:
    """The tokens of a principal, as brokers describe them to a user."""
    with brokers_of(cluster, name) as brokers:
        found = brokers.any(DescribeDelegationTokenRequest(owners=None)).tokens
    return [each for each in found if f"{each.principal_type}:{each.principal_name}" == owner]


# -- what a certificate allows -----------------------------------------------------------------------


def test_a_certificate_produces_and_consumes(carol: Client, admin: AdminClient) -> None:
    topic = topic_of(admin, CAROL)

    written = carol.produce(topic, "tea", "coffee")

    assert [each["offset"] for each in written.json()["offsets"]] == [0, 1]
    assert carol.values(topic) == ['"coffee"', '"tea"']
    with carol.consumer(topic) as read:
        found: list[str] = []
        until("the consumer has read both", lambda: len(found.__iadd__(read())) == 2)
        assert found == ["tea", "coffee"]


def test_a_certificate_registers_a_schema(carol: Client, admin: AdminClient) -> None:
    topic = topic_of(admin, CAROL)
    body = {"schema": '"string"'}

    assert carol("POST", f"/subjects/{topic}-value/versions", body).status_code == 200
    assert carol("GET", f"/subjects/{topic}-value/versions").json() == [1]
    assert carol("POST", f"/subjects/{fresh_name('other')}-value/versions", body).status_code == 403


def test_acls_of_the_principal_decide(carol: Client, admin: AdminClient) -> None:
    hers, others = topic_of(admin, CAROL), topic_of(admin, "User:carol", "User:alice")

    refused = carol.produce(others, "no")

    assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
    assert carol("GET", f"/api/v1/topics/{others}/messages?last=1").status_code in {403, 404}
    assert hers in carol("GET", "/topics").json()
    assert others not in carol("GET", "/topics").json()
    assert carol("POST", "/api/v1/topics", {"name": fresh_name("new")}).status_code == 403
    assert carol("GET", "/api/v1/users").status_code == 403


def test_mapping_rules_make_the_principal_of_a_user(
    url: str, files: Files, cluster: SecuredCluster, admin: AdminClient
) -> None:
    topic = topic_of(admin, "User:alice")
    alice = Client(url, files, files.client("mapped-alice"))
    nobody = Client(url, files, files.client("mapped-"))

    assert alice.produce(topic, 1).status_code == 200
    refused = nobody("GET", "/topics")
    assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
    assert "it has no name" in refused.json()["message"]
    assert tokens(cluster, "User:alice")


def test_other_credentials_take_precedence(url: str, files: Files, admin: AdminClient) -> None:
    topic = topic_of(admin, "User:alice")
    at, certificate = f"{url}/topics", files.client("carol")

    def listed(**more: Any) -> requests.Response:
        return requests.get(at, verify=files.ca, cert=certificate, timeout=TIMEOUT_S, **more)

    assert topic in listed(auth=("alice", "wonderland")).json()
    assert topic not in listed().json()
    assert listed(auth=("alice", "wrong")).status_code == 401


def test_another_sites_page_cannot_use_the_certificate(carol: Client, admin: AdminClient) -> None:
    topic = topic_of(admin, CAROL)
    records = {"records": [{"value": 1}]}

    assert carol("GET", "/topics", sec_fetch_site="cross-site").status_code == 403
    for headers in ({"sec_fetch_site": "cross-site"}, {"origin": "https://evil.example"}, {"origin": "null"}):
        given = {"content_type": JSON_V2, **headers}
        assert carol("POST", f"/topics/{topic}", records, **given).status_code == 403
    assert carol("GET", "/topics", sec_fetch_site="same-origin").status_code == 200
    assert carol.values(topic) == []


# -- certificates that are not accepted --------------------------------------------------------------


@pytest.mark.parametrize("client_auth", ["requested", "required"])
def test_expired_and_unknown_certificates_are_refused(
    cluster: SecuredCluster, files: Files, client_auth: str
) -> None:
    with gateway(cluster, files, user(cluster, "admin"), client_auth) as served:
        for certificate in (files.expired("carol"), files.of_stranger("carol")):
            with pytest.raises(requests.ConnectionError):
                Client(served.url, files, certificate)("GET", "/topics")
        assert Client(served.url, files, files.client("carol"))("GET", "/topics").status_code == 200


# -- tokens ------------------------------------------------------------------------------------------


def test_a_principal_has_one_token_which_ends_with_the_gateway(
    cluster: SecuredCluster, files: Files, admin: AdminClient, caplog: pytest.LogCaptureFixture
) -> None:
    topic, principal = topic_of(admin, "User:CN=dora"), "User:CN=dora"
    caplog.set_level(logging.DEBUG)
    with gateway(cluster, files, user(cluster, "admin")) as served:
        clients = [Client(served.url, files, files.client("dora")) for _ in range(3)]
        for each in clients:
            assert each.produce(topic, "tea").status_code == 200
        (token,) = tokens(cluster, principal)
        assert token.token_requester_principal_name == "admin"
        assert token.expiry_timestamp - token.issue_timestamp <= 3_700_000
    until("the token is deleted on every broker", lambda: tokens(cluster, principal) == [])
    password = base64.b64encode(token.hmac).decode()
    logged = [caplog.text, *(each.log.read_text() for each in cluster.brokers)]
    assert not [each for each in logged if password in each or repr(bytes(token.hmac)) in each]


def test_the_gateways_user_needs_an_acl_for_each_principal(
    cluster: SecuredCluster, files: Files, admin: AdminClient
) -> None:
    topic = topic_of(admin, "User:CN=erin", "User:CN=frank")
    with gateway(cluster, files, user(cluster, "bob")) as served:
        erin = Client(served.url, files, files.client("erin"))
        frank = Client(served.url, files, files.client("frank"))
        refused = erin.produce(topic, 1)
        assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
        assert "User:bob may not create tokens" in refused.json()["message"]
        assert "CREATE_TOKENS on USER User:CN=erin" in refused.json()["message"]

        tokens_of_erin = ResourcePattern(ours.ResourceType.USER, "User:CN=erin")
        entry = AclEntry("User:bob", "*", ours.Operation.CREATE_TOKENS, PermissionType.ALLOW)
        with brokers_of(cluster) as brokers:
            AclAdmin(brokers).create_acls([AclBindingOfOurs(tokens_of_erin, entry)])
        assert erin.produce(topic, 1).status_code == 200
        assert frank.produce(topic, 1).status_code == 403


def test_a_token_that_somebody_deletes_is_replaced(
    cluster: SecuredCluster, files: Files, admin: AdminClient
) -> None:
    topic, principal = topic_of(admin, "User:CN=grace"), "User:CN=grace"
    with gateway(cluster, files, user(cluster, "admin")) as served, brokers_of(cluster) as brokers:
        grace = Client(served.url, files, files.client("grace"))
        assert grace.produce(topic, 1).status_code == 200
        (old,) = tokens(cluster, principal)
        brokers.any(ExpireDelegationTokenRequest(hmac=old.hmac, expiry_time_period_ms=-1))
        until("the token is deleted on every broker", lambda: tokens(cluster, principal) == [])

        # A search makes a new consumer, which brokers refuse; upon that the gateway verifies the login.
        grace("GET", f"/api/v1/topics/{topic}/messages?last=1")
        until("the gateway has another token", lambda: grace.produce(topic, 2).ok and grace.values(topic))
        assert [each.token_id for each in tokens(cluster, principal)] != [old.token_id]


@pytest.fixture
def brief(tmp_path: Path) -> Iterator[SecuredCluster]:
    """A cluster whose tokens expire after some seconds unless they are renewed, and end a little later."""
    settings = {
        "delegation.token.secret.key": "brief",
        "delegation.token.expiry.time.ms": str(int(LIFETIME_S * 1000)),
        "delegation.token.max.lifetime.ms": str(int(3 * LIFETIME_S * 1000)),
        "delegation.token.expiry.check.interval.ms": "500",
    }
    with sasl_cluster(tmp_path, brokers=1, **settings) as running:
        yield running


def test_tokens_are_renewed_and_replaced_while_a_consumer_reads(brief: SecuredCluster, files: Files) -> None:
    topic, expiries = fresh_name("brief"), dict[str, set[int]]()
    alice = AdminClient(brief.settings())
    alice.create_topics([NewTopic(topic, 1, 1)])[topic].result()

    with gateway(brief, files, brief.settings(), "required") as served:
        heidi = Client(served.url, files, files.client("heidi"))

        def use_token() -> None:
            assert heidi.produce(topic, "tea").status_code == 200
            for each in tokens(brief, "User:CN=heidi", "alice"):
                expiries.setdefault(each.token_id, set()).add(each.expiry_timestamp)

        with heidi.consumer(topic) as read:

            def is_renewed() -> bool:
                use_token()
                read()
                return any(len(each) >= 3 for each in expiries.values())

            until("a token is renewed twice", is_renewed)

        def is_replaced() -> bool:
            use_token()
            return len(expiries) >= 2

        until("the token is replaced at the end of its lifetime", is_replaced)


# -- clusters that have no tokens --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "the brokers have no delegation.token.secret.key"),
        ({"sasl.enabled.mechanisms": "PLAIN", "delegation.token.secret.key": "some"}, "tokens need SCRAM"),
    ],
)
def test_a_refusal_says_what_the_brokers_lack(
    tmp_path: Path, files: Files, settings: dict[str, str], why: str
) -> None:
    with (
        sasl_cluster(tmp_path, brokers=1, **settings) as running,
        gateway(running, files, running.settings()) as served,
    ):
        refused = Client(served.url, files, files.client("carol"))("GET", "/topics")

    assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
    assert CAROL in refused.json()["message"]
    assert why in refused.json()["message"]
