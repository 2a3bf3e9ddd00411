"""Servers that require a credential: the embedded coordinator behaves as Apache ZooKeeper does."""

import asyncio
import subprocess
from pathlib import Path

import pyspark
import pytest
from kazoo.client import KazooClient

from coordination.processes import CoordinatorProcess
from coordination.secured import ANN, BOB, TICK_MS, SecuredServer, secured_coordinator, write_files
from coordination.wire import Wire
from headrace.coordination.client_security import DIGEST_SCHEME, ClientSecurity, CredentialRefused
from headrace.coordination.credentials import Credential
from headrace.coordination.embedded.errors import ErrorCode
from headrace.coordination.embedded.jute import string
from headrace.coordination.embedded.requests import Op
from headrace.coordination.session import Create, NotConnected, ZooKeeperSession
from headrace.system.java import find_java

TIMEOUT_MS = 20_000
TLS = pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])


@pytest.fixture
def server(secured_server: SecuredServer) -> SecuredServer:
    return secured_server


async def session_with(
    server: SecuredServer, security: ClientSecurity, *, connect_timeout_ms: int = TIMEOUT_MS
) -> ZooKeeperSession:
    return await ZooKeeperSession.connect(
        server.address if security.tls is None else server.tls_address,
        session_timeout_ms=20 * TICK_MS,
        connect_timeout_ms=connect_timeout_ms,
        security=security,
    )


@TLS
def test_a_user_reads_and_writes_many_znodes_at_once(server: SecuredServer, tls: bool) -> None:
    async def story() -> list[bytes]:
        session = await session_with(server, server.security(tls=tls))
        try:
            root = await session.create("/many-", b"", sequence=True)
            await asyncio.gather(*(session.create(f"{root}/{n}", b"%d" % n * 500) for n in range(200)))
            found = await asyncio.gather(*(session.get(f"{root}/{n}") for n in range(200)))
            await session.delete_tree(root)
            return [each.data for each in found if each is not None]
        finally:
            await session.close()

    assert asyncio.run(story()) == [b"%d" % n * 500 for n in range(200)]


def test_a_watch_fires_over_tls(server: SecuredServer) -> None:
    async def story() -> None:
        session = await session_with(server, server.security(tls=True))
        try:
            path = await session.create("/watched-", b"", sequence=True)
            fired = asyncio.Event()
            await session.get(path, fired.set)
            await session.set(path, b"new")
            async with asyncio.timeout(TIMEOUT_MS / 1000):
                await fired.wait()
        finally:
            await session.close()

    asyncio.run(story())


@pytest.mark.parametrize("wrong", [Credential("ann", "guess"), Credential("nobody", "guess")])
def test_a_wrong_password_is_reported_without_it(server: SecuredServer, wrong: Credential) -> None:
    with pytest.raises(CredentialRefused, match="are user and password right") as refused:
        asyncio.run(session_with(server, server.security(wrong)))
    assert "guess" not in str(refused.value)


def test_a_certificate_that_is_not_trusted(server: SecuredServer) -> None:
    security = ClientSecurity(credential=ANN, tls=server.tls(trusted="other.pem"))
    with pytest.raises(NotConnected, match="certificate verify failed"):
        asyncio.run(session_with(server, security, connect_timeout_ms=2000))


@pytest.mark.parametrize(
    "op", [Op.GET_DATA, Op.EXISTS, Op.GET_CHILDREN, Op.GET_ACL, Op.SYNC, Op.PING, Op.CLOSE]
)
def test_who_has_not_authenticated_may_do_nothing(server: SecuredServer, op: Op) -> None:
    wire = Wire(server.address)
    wire.connect()
    wire.send(op, string("/") + b"\0", xid=7)
    xid, _zxid, error, body = wire.receive()

    assert (xid, error, body) == (7, ErrorCode.SESSION_CLOSED_REQUIRE_SASL_AUTH, b"")
    assert wire.is_closed_by_server()
    wire.close()


def test_nonsense_as_a_token_of_sasl(server: SecuredServer) -> None:
    wire = Wire(server.address)
    wire.connect()
    assert wire.ask(Op.SASL, b"\0\0\0\0")[0] == ErrorCode.OK
    error, body = wire.ask(Op.SASL, string("username=ann"))

    # ZooKeeper has a code of its own for this if a credential is required; both close the connection.
    assert error in {ErrorCode.AUTH_FAILED, ErrorCode.SESSION_CLOSED_REQUIRE_SASL_AUTH}
    assert body == b"\xff\xff\xff\xff"
    assert wire.is_closed_by_server()
    wire.close()


def test_znodes_of_a_user_are_protected_from_others(server: SecuredServer) -> None:
    async def story() -> None:
        ann = await session_with(server, server.security(ANN, set_acl=True))
        bob = await session_with(server, server.security(BOB))
        try:
            await ann.ensure("/config/users")
            await ann.multi([Create("/config/users/alice", b"secret"), Create("/topics", b"public")])
            assert (await ann.get("/config/users/alice")) is not None
            found = await bob.get("/topics")
            assert found is not None
            assert found.data == b"public"
            assert await bob.children("/config") == ["users"]
            for refused in (
                bob.get("/config/users/alice"),
                bob.children("/config/users"),
                bob.set("/topics", b"changed"),
                bob.multi([Create("/topics/mine", b"")]),
                bob.create("/config/users/bob", b""),
            ):
                with pytest.raises(CredentialRefused, match="NOAUTH"):
                    await refused
        finally:
            for path in ("/config", "/topics"):
                await ann.delete_tree(path)
            await ann.close()
            await bob.close()

    asyncio.run(story())


JAVA_SCRIPT = """\
create /java x auth::cdrwa
getAcl /java
delete /java
quit
"""


@TLS
def test_java_s_client_authenticates_with_the_same_jaas_file(server: SecuredServer, tls: bool) -> None:
    options = [
        f"-Djava.security.auth.login.config={server.files / 'jaas.conf'}",
        "-Dzookeeper.fips-mode=false",  # the default of this mode excludes MD5
    ]
    if tls:
        options += [
            "-Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty",
            "-Dzookeeper.client.secure=true",
            f"-Dzookeeper.ssl.trustStore.location={server.files / 'trusted.pem'}",
        ]
    jars = Path(pyspark.__file__).parent / "jars"
    address = server.tls_address if tls else server.address
    command = [find_java("ZooKeeper"), *options, "-cp", f"{jars}/*", "org.apache.zookeeper.ZooKeeperMain"]
    ended = subprocess.run(
        [str(part) for part in (*command, "-server", address)],
        input=JAVA_SCRIPT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = ended.stdout + ended.stderr

    assert "Created /java" in said, said
    assert "'sasl,'ann" in said


def test_the_scheme_digest_authenticates_with_the_embedded_coordinator(tmp_path: Path) -> None:
    """ZooKeeper accepts any password in this scheme, so it requires SASL instead."""

    async def story(server: SecuredServer) -> None:
        session = await session_with(server, server.security(BOB, scheme=DIGEST_SCHEME, set_acl=True))
        try:
            await session.create("/kafka-acl", b"x")
        finally:
            await session.close()
        with pytest.raises(CredentialRefused):
            await session_with(server, server.security(Credential("bob", "guess"), scheme=DIGEST_SCHEME))

    with secured_coordinator(tmp_path) as server:
        asyncio.run(story(server))
        ann = KazooClient(server.address, auth_data=[("digest", f"ann:{ANN.password}")])
        ann.start(15)
        assert ann.get_acls("/")[0]
        ann.stop()
        ann.close()


def test_a_certificate_is_a_credential(tmp_path: Path) -> None:
    files = write_files(tmp_path)
    config = files / "mutual.properties"
    config.write_text(
        f"ssl.keystore.location={files / 'server.pem'}\nssl.truststore.location={files / 'trusted.pem'}\n"
        "ssl.client.auth=requested\n"
    )
    options = (f"--credentials={files / 'jaas.conf'}", f"--config={config}", "--no-sync")

    async def story(server: SecuredServer) -> None:
        security = ClientSecurity(tls=server.tls(keystore="client.pem"), set_acl=True)
        session = await session_with(server, security)
        try:
            await session.create("/mine", b"x")
        finally:
            await session.close()
        ann = await session_with(server, server.security(tls=True))
        try:
            with pytest.raises(CredentialRefused):
                await ann.set("/mine", b"y")
        finally:
            await ann.close()

    with CoordinatorProcess(tmp_path / "data", tick_ms=TICK_MS, options=options) as process:
        asyncio.run(story(SecuredServer("embedded", process.address, process.address, files)))
