"""Who we say we are: SCRAM by the RFC's example, brokers that cannot be trusted, and Java's JAAS."""

from typing import Any

import pytest

from headrace.client.errors import ClientError, Refused
from headrace.client.wire.sasl import Sasl
from headrace.protocol.schema.sasl_authenticate import SaslAuthenticateResponse
from headrace.protocol.schema.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from headrace.security.sasl.jaas import jaas_options
from headrace.security.sasl.scram import ScramClient

# RFC 7677, section 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def user(name: str = "user", password: str = "pencil", mechanism: str = "SCRAM-SHA-256") -> Sasl:
    return Sasl(mechanism=mechanism, username=name, password=password)


def scram_client(sasl: Sasl, nonce: str) -> ScramClient:
    return ScramClient(sasl.mechanism, sasl.username, sasl.password, nonce)


class Impostor:
    """Plays the broker without knowing the password."""

    def __init__(self, challenge: str) -> None:
        self._challenge = challenge

    def __call__(self, request: Any) -> Any:
        if isinstance(request, SaslHandshakeRequest):
            return SaslHandshakeResponse(mechanisms=[request.mechanism])
        said = request.auth_bytes.decode()
        if said.startswith("n,,"):
            answer = self._challenge.replace(NONCE, said.partition("r=")[2])
            return SaslAuthenticateResponse(auth_bytes=answer.encode())
        return SaslAuthenticateResponse(auth_bytes=SIGNATURE)


def test_scram_proves_the_password_as_the_rfc_does() -> None:
    scram = scram_client(user(), NONCE)

    assert scram.first() == f"n,,n=user,r={NONCE}"
    assert scram.prove(CHALLENGE) == f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p={PROOF}"
    assert scram.expected == SIGNATURE


def test_signs_that_scram_has_a_use_for_are_written_otherwise_in_a_name() -> None:
    assert scram_client(user("a=b,c"), "r").first() == "n,,n=a=3Db=2Cc,r=r"


@pytest.mark.parametrize(
    "challenge",
    [
        CHALLENGE.replace("4096", "4095"),  # too few rounds to protect the password
        CHALLENGE.replace("4096", "1000001"),  # so many that it would take us for long
        CHALLENGE.replace("4096", "many"),
        CHALLENGE.replace(NONCE, "another"),
        CHALLENGE.replace("%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", ""),  # it has added nothing of its own
        CHALLENGE.replace("W22Z", "?"),
        CHALLENGE.replace(",s=", ",t="),
        "e=other-error",
        "nothing",
        "",
    ],
)
def test_a_challenge_that_no_broker_would_send_is_not_answered(challenge: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        scram_client(user(), NONCE).prove(challenge)
    with pytest.raises(Refused, match=r"^10\.0\.0\.1:9092 sent an invalid SCRAM-SHA-256 challenge"):
        user().authenticate(Impostor(challenge), "10.0.0.1:9092")


def test_a_broker_that_does_not_know_the_password_is_not_trusted() -> None:
    with pytest.raises(Refused, match=r"^10\.0\.0\.1:9092 does not know the password of user"):
        user().authenticate(Impostor(CHALLENGE), "10.0.0.1:9092")


@pytest.mark.parametrize(
    ("config", "options"),
    [
        ('some.Module required username="ann" password="secret";', {"username": "ann", "password": "secret"}),
        ("M required\n username='ann'\n password = secret ;", {"username": "ann", "password": "secret"}),
        (
            r'M required username="a\"b" password="\\ \t \101 \q;";',
            {"username": 'a"b', "password": "\\ \t A q;"},
        ),
        ("M required password=\"username='eve'\";", {"password": "username='eve'"}),
        ('M required username="" x-y.z="1";', {"username": "", "x-y.z": "1"}),
        ('M required username="ann', {}),
        ("M required;", {}),
        ("", {}),
    ],
)
def test_options_of_a_login_module_are_read_as_java_does(config: str, options: dict[str, str]) -> None:
    assert jaas_options(config) == options


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "sasl.mechanism is missing: choose one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism is GSSAPI: choose one of PLAIN"),
        ({"sasl.mechanism": "plain"}, "sasl.username is missing"),
        ({"sasl.mechanisms": "PLAIN", "sasl.username": "ann"}, "sasl.password is missing"),
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": 'M required username="ann" password="sec'},
            "sasl.jaas.config has no password: expected MODULE",
        ),
    ],
)
def test_what_is_missing_is_named_and_nothing_that_is_there(settings: dict[str, str], says: str) -> None:
    with pytest.raises(ClientError) as raised:
        Sasl.of(settings)

    assert str(raised.value).startswith(says)
    assert "sec" not in str(raised.value)


def test_a_token_is_sent_with_its_extensions() -> None:
    said: list[bytes] = []

    def ask(request: Any) -> Any:
        if isinstance(request, SaslHandshakeRequest):
            return SaslHandshakeResponse(error_code=0, mechanisms=["OAUTHBEARER"])
        said.append(request.auth_bytes)
        return SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b"")

    settings = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.config": "scope"}
    Sasl.of(settings, lambda config: (f"a.{config}", 0.0, "ann", {"traceId": "1"})).authenticate(ask, "h:1")

    assert said == [b"n,,\x01auth=Bearer a.scope\x01traceId=1\x01\x01"]
    missing = r"^sasl\.oauthbearer\.token\.endpoint\.url is missing, and oauth_cb too: expected https://"
    with pytest.raises(ClientError, match=missing):
        Sasl.of(settings)


def test_a_delegation_token_is_said_to_be_one() -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    jaas = f'{module} username="id" password="hmac" tokenauth="true";'

    assert Sasl.of({"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": jaas}).is_token


def test_a_user_is_shown_without_the_password() -> None:
    assert repr(user()) == "Sasl(mechanism='SCRAM-SHA-256', username='user')"
