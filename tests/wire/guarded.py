"""A cluster that is guarded by ACLs, and its users."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from headrace.protocol.schema.sasl_authenticate import SaslAuthenticateRequest
from headrace.protocol.schema.sasl_handshake import SaslHandshakeRequest
from wire.raw import RawClient
from wire.secured import SecuredCluster, sasl_cluster

PASSWORDS: Final = {"broker": "inside", "admin": "almighty", "alice": "wonderland", "bob": "builder"}
"""Of the users; all others have their name as password."""
TOKEN_SECRET: Final = "makes delegation tokens"
CLIENTS, OPEN = 1, 2
"""Listeners: users of CLIENTS have passwords, everybody at OPEN is anonymous."""


def password(user: str) -> str:
    return PASSWORDS.get(user, user)


def login_module(users: Iterable[str]) -> str:
    """The users for PLAIN, in the words of JAAS."""
    known = " ".join(f'user_{user}="{password(user)}"' for user in [*PASSWORDS, *users])
    return (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="broker" password="{PASSWORDS["broker"]}" {known};'
    )


@contextmanager
def guarded_cluster(root: Path, brokers: int, users: Iterable[str] = ()) -> Iterator[SecuredCluster]:
    """Brokers with an authorizer. The super users are the brokers and `admin`; there are no ACLs yet."""
    settings = {
        "listeners": "INSIDE://127.0.0.1:0,CLIENTS://127.0.0.1:0,OPEN://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:SASL_PLAINTEXT,CLIENTS:SASL_PLAINTEXT,OPEN:PLAINTEXT",
        "sasl.jaas.config": login_module(users),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:broker;User:admin",
        "delegation.token.secret.key": TOKEN_SECRET,
    }
    with sasl_cluster(root, brokers, **settings) as running:
        yield running


def user(cluster: SecuredCluster, name: str, **more: Any) -> dict[str, Any]:
    """The settings of librdkafka; underscores stand for dots."""
    return cluster.settings(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": name,
            "sasl.password": password(name),
        },
        **more,
    )


def address(cluster: SecuredCluster, listener: int, broker: int = 0) -> str:
    return cluster.brokers[broker].address.split(",")[listener]


def log_in(client: RawClient, name: str) -> RawClient:
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    message = b"\0".join([b"", name.encode(), password(name).encode()])
    assert client.ask(SaslAuthenticateRequest(auth_bytes=message), 2).error_code == 0
    return client
