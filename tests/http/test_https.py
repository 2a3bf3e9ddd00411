"""HTTPS: certificates, sessions with their cookies and tokens, client certificates, bearer tokens."""

import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from cluster.waiting import until
from headrace.client.wire.security import Security
from headrace.gateway.serving import serve_in_thread
from headrace.security.tls import TlsSettings
from support.certificates import Authority
from wire.issuer import ISSUER, Issuer
from wire.requests import fresh_name
from wire.secured import LOGIN, SecuredCluster, secured_cluster

TIMEOUT_S: Final = 30
HOSTS: Final = ("127.0.0.1", "localhost")
ALICE: Final = ("alice", "wonderland")
GATEWAY: Final = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "broker",
    "sasl.password": "inside",
}


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("gateway tests")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Path:
    made: Path = tmp_path_factory.mktemp("https")
    (made / "ca.pem").write_text(authority.certificate)
    write(authority, made / "gateway.pem", "gateway")
    write(authority, made / "client.pem", "carol")
    return made


def write(authority: Authority, path: Path, name: str) -> None:
    """Put the key and the certificate of `name` into a file, at once."""
    made = authority.certify(name, HOSTS)
    new = path.with_suffix(".new")
    new.write_text(made.key + made.certificate)
    new.rename(path)


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    return Issuer(tmp_path_factory.mktemp("issuer") / "jwks.json")


@pytest.fixture(scope="module")
def cluster(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    """One broker whose clients have passwords or tokens."""
    settings = {
        "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.jaas.config": LOGIN,
        "listener.name.inside.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": issuer.path.as_uri(),
        "sasl.oauthbearer.expected.audience": "headrace",
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }
    with secured_cluster(tmp_path_factory.mktemp("users"), settings, brokers=1) as made:
        yield made


@pytest.fixture(scope="module")
def url(cluster: SecuredCluster, root: Path) -> Iterator[str]:
    tls = TlsSettings.of(
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(root / "gateway.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(root / "ca.pem"),
            "ssl.client.auth": "requested",
        }
    )
    security = Security.of(GATEWAY)
    with serve_in_thread(cluster.bootstrap, security=security, authentication=True, tls=tls) as served:
        assert served.url.startswith("https://")
        yield served.url


@pytest.fixture
def browser(url: str, root: Path) -> Iterator[requests.Session]:
    """Somebody who has logged in, without the scripts of a browser."""
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(root / "ca.pem")
        answer = log_in(session, url)
        assert (answer.status_code, answer.headers["location"]) == (303, "/ui/topics"), answer.text
        yield session


def log_in(
    session: requests.Session, url: str, *, password: str = ALICE[1], **more: str
) -> requests.Response:
    form = {"user": ALICE[0], "password": password, "next": "/ui/topics", **more}
    return session.post(
        f"{url}/ui/login", form, headers={"origin": url}, timeout=TIMEOUT_S, allow_redirects=False
    )


def ask(url: str, root: Path, path: str, **more: Any) -> requests.Response:
    return requests.get(f"{url}{path}", verify=str(root / "ca.pem"), timeout=TIMEOUT_S, **more)


# -- TLS -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_of_tls_are_spoken(url: str, root: Path, version: ssl.TLSVersion) -> None:
    context = ssl.create_default_context(cafile=str(root / "ca.pem"))
    context.minimum_version = context.maximum_version = version
    host, port = url.removeprefix("https://").split(":")
    with (
        socket.create_connection((host, int(port)), TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname=host) as secured,
    ):
        secured.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        assert secured.recv(15) == b"HTTP/1.1 200 OK"


def test_plain_http_gets_nothing(url: str) -> None:
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{url.replace('https', 'http')}/healthz", timeout=TIMEOUT_S)


def test_a_new_certificate_is_served_without_a_restart(url: str, root: Path, authority: Authority) -> None:
    host, port = url.removeprefix("https://").split(":")

    def serial() -> str:
        return ssl.get_server_certificate((host, int(port)), timeout=TIMEOUT_S)

    before = serial()
    write(authority, root / "gateway.pem", "gateway")
    until("the new certificate is served", lambda: serial() != before)
    assert ask(url, root, "/healthz").ok


# -- sessions --------------------------------------------------------------------------------------


def test_a_login_sets_a_cookie_that_scripts_and_other_sites_cannot_use(url: str, root: Path) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(root / "ca.pem")
        cookie = log_in(session, url).headers["set-cookie"]

    name, *attributes = cookie.split("; ")
    assert name.startswith("__Host-headrace-session=")
    assert len(name.partition("=")[2]) >= 43
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict", "Secure"}


def test_a_session_is_another_one_after_every_login(url: str, browser: requests.Session) -> None:
    first = browser.cookies.get_dict()["__Host-headrace-session"]
    log_in(browser, url)
    second = browser.cookies.get_dict()["__Host-headrace-session"]

    assert first != second
    stolen = {"cookie": f"__Host-headrace-session={first}"}
    assert requests.get(f"{url}/topics", headers=stolen, verify=browser.verify, timeout=9).status_code == 401


def test_a_page_has_the_user_and_what_its_scripts_need(url: str, browser: requests.Session) -> None:
    page = browser.get(f"{url}/ui/topics", timeout=TIMEOUT_S)

    assert page.status_code == 200
    assert ">alice</span>" in page.text
    assert ALICE[1] not in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "same-origin"


def token_of(browser: requests.Session, url: str) -> str:
    page = browser.get(f"{url}/ui/topics", timeout=TIMEOUT_S).text
    return page.partition('<meta name="csrf-token" content="')[2].partition('"')[0]


def test_a_change_needs_the_token_and_our_own_page(url: str, browser: requests.Session) -> None:
    token, topic = token_of(browser, url), fresh_name("made")

    def create(**headers: str) -> int:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        body: Any = {"name": topic, "partitions": 1}
        return browser.post(f"{url}/api/v1/topics", json=body, headers=given, timeout=TIMEOUT_S).status_code

    assert create() == 403
    assert create(origin=url) == 403
    assert create(x_csrf_token=token) == 403
    assert create(x_csrf_token="guess", origin=url) == 403
    assert create(x_csrf_token=token, origin="https://evil.example") == 403
    assert create(x_csrf_token=token, origin=url, sec_fetch_site="cross-site") == 403
    assert topic not in browser.get(f"{url}/topics", timeout=TIMEOUT_S).json()
    assert create(x_csrf_token=token, origin=url) == 201


def test_another_site_cannot_follow_a_topic_with_our_cookie(url: str, browser: requests.Session) -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}
    answer = browser.get(f"{url}/api/v1/topics/any/tail", headers=headers, timeout=TIMEOUT_S)
    assert answer.status_code == 403


def test_a_logout_ends_the_session_and_its_streams(url: str, browser: requests.Session) -> None:
    token, topic = token_of(browser, url), fresh_name("followed")
    headers = {"x-csrf-token": token, "origin": url}
    browser.post(f"{url}/api/v1/topics", json={"name": topic}, headers=headers, timeout=TIMEOUT_S)
    with browser.get(f"{url}/api/v1/topics/{topic}/tail", stream=True, timeout=TIMEOUT_S) as followed:
        assert followed.status_code == 200
        lines = followed.iter_lines()
        assert next(lines)

        forged = browser.post(f"{url}/ui/logout", {"csrf_token": "guess"}, headers={"origin": url}, timeout=9)
        assert forged.status_code == 403
        form = {"csrf_token": token}
        ended = browser.post(
            f"{url}/ui/logout", form, headers={"origin": url}, timeout=9, allow_redirects=False
        )
        assert (ended.status_code, ended.headers["location"]) == (303, "/ui/login")
        assert "Max-Age=0" in ended.headers["set-cookie"]
        list(lines)  # the stream ends
    assert browser.get(f"{url}/topics", timeout=TIMEOUT_S).status_code == 401


@pytest.mark.parametrize(
    ("origin", "status"), [({}, 403), ({"origin": "https://evil.example"}, 403), ({"origin": "null"}, 403)]
)
def test_nobody_is_logged_in_by_another_sites_form(
    url: str, root: Path, origin: dict[str, str], status: int
) -> None:
    form = {"user": ALICE[0], "password": ALICE[1]}
    answer = requests.post(
        f"{url}/ui/login", form, headers=origin, verify=str(root / "ca.pem"), timeout=TIMEOUT_S
    )
    assert answer.status_code == status
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "wanted",
    ["https://evil.example/", "//evil.example/ui/", "/\\evil.example", "javascript:x", "/ui/login", "/"],
)
def test_a_login_leads_to_our_own_pages_only(url: str, root: Path, wanted: str) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(root / "ca.pem")
        assert log_in(session, url, next=wanted).headers["location"] == "/ui/"


def test_a_wrong_password_is_said_on_the_page_and_not_repeated(url: str, root: Path) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(root / "ca.pem")
        answer = log_in(session, url, password="<b>guess")
    assert answer.status_code == 401
    assert "do not accept these credentials" in answer.text
    assert 'value="alice"' in answer.text
    assert "guess" not in answer.text


def test_authentications_are_counted(url: str, root: Path) -> None:
    assert ask(url, root, "/topics", auth=(ALICE[0], "guess")).status_code == 401

    text = ask(url, root, "/metrics", auth=ALICE).text

    counted = dict(
        line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("headrace_gateway_auth")
    )
    assert float(counted['headrace_gateway_authentications_total{result="failed"}']) >= 1
    assert float(counted['headrace_gateway_authentications_total{result="accepted"}']) >= 1


# -- certificates and tokens -----------------------------------------------------------------------


def test_a_certificate_alone_is_refused_with_its_principal_without_tokens(url: str, root: Path) -> None:
    certificate = str(root / "client.pem")

    alone = ask(url, root, "/topics", cert=certificate)
    both = ask(url, root, "/topics", cert=certificate, auth=ALICE)

    assert (alone.status_code, alone.json()["error_code"]) == (403, 40301)
    assert "User:CN=carol" in alone.json()["message"]
    assert both.status_code == 200


def test_a_token_is_passed_on_to_the_brokers(url: str, root: Path, issuer: Issuer) -> None:
    topic, token = fresh_name("tokens"), issuer.token("alice")
    headers = {"authorization": f"Bearer {token}"}

    def post(path: str, body: Any, kind: str = "application/json") -> requests.Response:
        given = headers | {"content-type": kind}
        at = f"{url}{path}"
        return requests.post(at, json=body, headers=given, verify=str(root / "ca.pem"), timeout=TIMEOUT_S)

    assert post("/api/v1/topics", {"name": topic, "partitions": 1}).status_code == 201
    written = post(f"/topics/{topic}", {"records": [{"value": 1}]}, "application/vnd.kafka.json.v2+json")
    assert written.json()["offsets"][0]["offset"] == 0
    found = ask(url, root, f"/api/v1/topics/{topic}/messages?last=1", headers=headers).json()
    assert [each["value"] for each in found["messages"]] == ["1"]
    for wrong in (issuer.token("alice", exp=int(time.time()) - 60), "e30.e30.c2ln", "opaque"):
        answer = ask(url, root, "/topics", headers={"authorization": f"Bearer {wrong}"})
        assert (answer.status_code, answer.json()["error_code"]) == (401, 40101)
        assert wrong not in answer.text


def test_confluents_registry_client_enters_with_a_token(url: str, root: Path, issuer: Issuer) -> None:
    settings = {
        "url": url,
        "ssl.ca.location": str(root / "ca.pem"),
        "bearer.auth.credentials.source": "STATIC_TOKEN",
        "bearer.auth.token": issuer.token("alice"),
        "bearer.auth.logical.cluster": "any",
        "bearer.auth.identity.pool.id": "any",
    }
    with SchemaRegistryClient(settings) as registry:
        subject = f"{fresh_name('token')}-value"
        registry.register_schema(subject, Schema('"string"', "AVRO"))
        assert registry.get_latest_version(subject).version == 1
