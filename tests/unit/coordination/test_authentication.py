"""Who may use a coordinator that requires a credential, without a socket."""

from struct import pack

import pytest

from coordination.fakes import FakeClient, World
from headrace.coordination.embedded.acl import ALL, Acl, Identity
from headrace.coordination.embedded.authentication import Authentication
from headrace.coordination.embedded.errors import ErrorCode
from headrace.coordination.embedded.jute import NULL, Reader, buffer, string
from headrace.coordination.embedded.requests import Op
from headrace.security.sasl.digest_md5 import DigestMd5Client

OK, AUTH_FAILED = ErrorCode.OK, ErrorCode.AUTH_FAILED
REFUSED = ErrorCode.SESSION_CLOSED_REQUIRE_SASL_AUTH
SECRET = "hidden"


@pytest.fixture
def guarded() -> World:
    return World(authentication=Authentication({"ann": SECRET}, is_required=True))


def digest(client: FakeClient, credentials: str, scheme: str = "digest") -> object:
    ((_, code, _body),) = client.ask(Op.AUTH, pack(">i", 0) + string(scheme) + string(credentials))
    return code


def sasl(client: FakeClient, name: str, password: str) -> object:
    """Authenticate with SASL, and return the last error code."""
    ((_, code, challenge),) = client.ask(Op.SASL, buffer(b""))
    if code != OK:
        return code
    assert isinstance(challenge, bytes)
    proof = DigestMd5Client(name, password).respond(Reader(challenge).buffer() or b"")
    ((_, code, _body),) = client.ask(Op.SASL, buffer(proof))
    return code


@pytest.mark.parametrize("op", sorted(set(Op) - {Op.AUTH, Op.SASL}))
def test_a_client_without_a_credential_may_do_nothing(guarded: World, op: Op) -> None:
    client = guarded.client()
    ((_, code, body),) = client.ask(op, string("/") + b"\0" * 8)

    assert (code, body) == (REFUSED, b"")
    assert client.closed
    assert guarded.entries == []  # it has caused no write either, not even that of its session


@pytest.mark.parametrize("how", [sasl, lambda client, name, word: digest(client, f"{name}:{word}")])
def test_a_credential_opens_the_session(guarded: World, how: object) -> None:
    assert callable(how)
    client = guarded.client()
    assert guarded.entries == []
    assert how(client, "ann", SECRET) == OK
    assert len(guarded.entries) == 1
    assert client.requester.session_id in guarded.state.sessions
    ((_, code, _path),) = client.create("/a")
    assert code == OK


def test_a_session_goes_on_only_after_the_new_connection_has_authenticated(guarded: World) -> None:
    first, second = guarded.client(), FakeClient(guarded.service)
    sasl(first, "ann", SECRET)
    session_id = first.requester.session_id
    password = guarded.state.sessions.all()[0].password
    assert second.connect(session_id=session_id, password=password)[1] == session_id
    assert first.closed
    ((_, code, _body),) = second.create("/a")
    assert code == REFUSED


@pytest.mark.parametrize(("name", "password"), [("ann", "wrong"), ("eve", SECRET)])
def test_a_wrong_credential_closes_the_connection_and_is_counted(
    guarded: World, name: str, password: str, caplog: pytest.LogCaptureFixture
) -> None:
    clients = [guarded.client() for _ in range(2)]

    assert sasl(clients[0], name, password) == AUTH_FAILED
    assert digest(clients[1], f"{name}:{password}") == AUTH_FAILED
    assert [client.closed for client in clients] == [True, True]
    assert guarded.service.authentication.failures == 2
    assert name in caplog.text
    assert password not in caplog.text
    assert guarded.entries == []


def test_another_scheme_is_no_credential(guarded: World) -> None:
    assert digest(guarded.client(), "", "ip") == AUTH_FAILED


def test_a_failed_sasl_reply_has_a_token_because_java_s_client_reads_one(guarded: World) -> None:
    client = guarded.client()
    client.ask(Op.SASL, buffer(b""))

    assert client.ask(Op.SASL, buffer(b"nonsense")) == [("reply", AUTH_FAILED, NULL)]


def test_without_users_there_is_no_sasl_and_nobody_needs_it() -> None:
    world = World()
    client = world.client()

    assert client.ask(Op.SASL, buffer(b"")) == [("reply", OK, NULL)]
    assert client.create("/a")[0][1] == OK


def test_acls_can_name_a_user_of_sasl() -> None:
    world = World(authentication=Authentication({"ann": SECRET}))
    ann, other = world.client(), world.client()
    sasl(ann, "ann", SECRET)
    ann.create("/mine", acl=(Acl(ALL, "auth", ""),))
    ann.create("/named", acl=(Acl(ALL, "sasl", "ann"),))

    assert world.state.tree.nodes["/mine"].acl == (Acl(ALL, "sasl", "ann"),)
    for path in ("/mine", "/named"):
        assert ann.set(path, b"x")[0][1] == OK
        assert other.set(path, b"x")[0][1] == ErrorCode.NO_AUTH
    assert Identity("sasl", "ann") in ann.requester.identities


def test_a_password_of_scheme_digest_that_no_user_has_makes_an_identity_but_admits_nobody() -> None:
    world = World(authentication=Authentication({"ann": SECRET}, is_required=True))
    client = world.client()
    sasl(client, "ann", SECRET)

    assert digest(client, "somebody:else") == OK
    assert len(client.requester.identities) == 2


def test_the_number_of_identities_is_limited() -> None:
    client = World().client()
    codes = [digest(client, f"user{number}:x") for number in range(70)]

    assert codes.count(AUTH_FAILED) > 0
    assert len(client.requester.identities) == 64
