"""OAUTHBEARER with identity providers: tokens by the client-credentials grant over HTTPS, or by a file."""

import base64
import json
import pickle
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

import pytest

from headrace import Producer
from headrace.client.errors import AuthenticationFailed, ClientError, Refused, Unreachable, WrongSetting
from headrace.client.wire import oauth
from headrace.client.wire.oauth import URL, TokenEndpoint
from headrace.client.wire.security import Security
from headrace.tables.reader.cluster import ClusterConnections
from support.certificates import Authority
from wire.certificate_files import Files
from wire.issuer import Issuer, listener_settings
from wire.requests import fresh_name
from wire.secured import SecuredCluster, secured_cluster

SECRET: Final = 'wonder"land+\\'
HANDLER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


@dataclass
class Provider:
    """An identity provider with one client, and the requests that it got."""

    issuer: Issuer
    trusted: Path
    url: str = ""
    status: int = 200
    requests: list[dict[str, list[str]]] = field(default_factory=list)

    def answer(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        self.requests.append(form)
        client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if self.status != 200:
            return self.status, {"error": "temporarily_unavailable"}
        if (client, secret) != ("spark", SECRET):
            return 401, {"error": "invalid_client", "error_description": f"{secret} is wrong"}
        return 200, {"access_token": self.issuer.token(client), "expires_in": 300, "token_type": "bearer"}

    def settings(self, secret: str = SECRET, trusted: Path | None = None) -> dict[str, str]:
        quoted = secret.replace("\\", "\\\\").replace('"', '\\"')
        jaas = (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            f'clientId="spark" clientSecret="{quoted}" scope="read write" '
            f'ssl.truststore.location="{trusted or self.trusted}" ssl.truststore.type="PEM";'
        )
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": HANDLER,
            "sasl.jaas.config": jaas,
            URL: self.url,
        }


@contextmanager
def served(provider: Provider, certificate: Path) -> Iterator[Provider]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            status, answer = provider.answer(self.headers["Authorization"], form)
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, ThreadPoolExecutor(1) as pool:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        pool.submit(server.serve_forever)
        provider.url = f"https://127.0.0.1:{server.server_port}/token?tenant=1"
        try:
            yield provider
        finally:
            server.shutdown()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("certificates"), Authority("login"))


@pytest.fixture
def provider(issuer: Issuer, files: Files) -> Iterator[Provider]:
    oauth._tokens.clear()
    with served(Provider(issuer, files.trusted), files.write("provider")) as made:
        yield made


@pytest.fixture(scope="module")
def cluster(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with secured_cluster(tmp_path_factory.mktemp("oauth"), listener_settings(issuer), brokers=1) as made:
        yield made


def test_clients_enter_with_the_token_of_the_provider(cluster: SecuredCluster, provider: Provider) -> None:
    settings, topic = provider.settings(), fresh_name("granted")
    security: Security = pickle.loads(pickle.dumps(Security.of(settings)))  # as an executor gets it
    with Producer(cluster.bootstrap, settings=settings) as producer:
        producer.send(topic, b"1")
    with closing(ClusterConnections(cluster.bootstrap, security)) as tasks:
        assert tasks.partition_count(topic) == 1

    assert provider.requests == [{"grant_type": ["client_credentials"], "scope": ["read write"]}]
    assert SECRET not in repr(security)


def test_a_token_in_a_file_is_sent(cluster: SecuredCluster, issuer: Issuer, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(issuer.token("reader") + "\n")
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", URL: file.as_uri()}

    with closing(ClusterConnections(cluster.bootstrap, Security.of(settings))) as tasks:
        assert tasks.brokers() == 1


def test_a_token_is_replaced_before_it_expires(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = TokenEndpoint.of(provider.settings())
    token, expires_s, client, _ = endpoint("")
    assert (endpoint("")[0], client) == (token, "spark")
    assert 500 < expires_s - time.time() < 601  # the claim `exp`, not `expires_in`

    later_s = time.time() + 0.81 * 600
    monkeypatch.setattr(time, "time", lambda: later_s)
    assert endpoint("")[0] != token
    assert len(provider.requests) == 2


def test_settings_of_newer_clients_and_of_librdkafka(provider: Provider) -> None:
    newer, older = "sasl.oauthbearer.client.credentials.client", "sasl.oauthbearer.client"
    jaas = provider.settings()["sasl.jaas.config"].replace("clientId=", "x=").replace("clientSecret=", "y=")
    for prefix in (newer, older):
        named = {
            URL: provider.url,
            "sasl.jaas.config": jaas,
            f"{prefix}.id": "spark",
            f"{prefix}.secret": SECRET,
            "sasl.oauthbearer.extensions": "logicalCluster=lkc-1",
        }
        assert TokenEndpoint.of(named)("")[2:] == ("spark", {"logicalCluster": "lkc-1"})


@pytest.mark.parametrize(
    ("status", "kind"), [(503, Unreachable), (429, Unreachable), (400, AuthenticationFailed)]
)
def test_a_failure_of_the_provider(provider: Provider, status: int, kind: type[ClientError]) -> None:
    provider.status = status
    with pytest.raises(kind, match=f"/token .* status {status}"):
        TokenEndpoint.of(provider.settings())("")


def test_a_wrong_secret_is_not_shown(provider: Provider) -> None:
    with pytest.raises(AuthenticationFailed) as refused:
        TokenEndpoint.of(provider.settings(secret="tweedledee"))("")

    shown = provider.url.partition("?")[0]
    assert str(refused.value) == f"{shown} refuses the client with status 401 (invalid_client)"


def test_a_provider_that_is_not_trusted_gets_no_secret(provider: Provider, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_text(Authority("login").certificate)
    with pytest.raises(Refused, match="cannot be trusted"):
        TokenEndpoint.of(provider.settings(trusted=other))("")

    assert provider.requests == []


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({URL: ""}, f"{URL} is missing"),
        ({URL: "ldap://host/"}, f"{URL} is 'ldap://host/': expected https://"),
        ({"sasl.jaas.config": 'M required clientId="a";'}, "sasl.jaas.config has no clientSecret"),
        ({"sasl.login.read.timeout.ms": "soon"}, "sasl.login.read.timeout.ms is 'soon': expected"),
        ({"sasl.oauthbearer.extensions": "a"}, "sasl.oauthbearer.extensions is not NAME=VALUE"),
    ],
)
def test_a_mistake_is_named(changed: dict[str, str], why: str) -> None:
    settings = {URL: "https://h/", "sasl.jaas.config": 'M required clientId="a" clientSecret="b";'}
    with pytest.raises(WrongSetting, match=why):
        TokenEndpoint.of(settings | changed)
