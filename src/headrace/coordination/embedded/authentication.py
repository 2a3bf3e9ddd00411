"""Who may use the coordinator: its users, their passwords, and whether every session needs one of them.

A client authenticates with SASL DIGEST-MD5, with an auth packet of the scheme `digest`, or with a certificate
that the truststore trusts (`x509`). If a credential is required, a connection without one may do nothing
else: no request, and no session that would be stored.
"""

import hmac
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headrace.coordination.credentials import users_of_file
from headrace.coordination.embedded.acl import Identity, digest_identity
from headrace.coordination.embedded.errors import ErrorCode, KeeperError
from headrace.security.sasl.digest_md5 import DigestMd5Server
from headrace.security.sasl.exchange import AuthenticationFailed

if TYPE_CHECKING:
    from headrace.coordination.embedded.service import Client

MAX_IDENTITIES: Final = 64
"""Identities of one connection; every access check looks at all of them."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Authentication:
    """The users with their passwords, and the number of failed attempts since the start."""

    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_required: bool = False
    failures: int = 0

    @classmethod
    def of_file(cls, path: Path) -> "Authentication":
        """Require the users in the section Server of a JAAS file; CoordinationError if there are none."""
        return cls(users_of_file(path), is_required=True)

    def admits(self, client: "Client") -> bool:
        """Return whether `client` may send other requests than those that authenticate it."""
        return client.is_authenticated or not self.is_required

    def require(self, client: "Client") -> None:
        """Raise the error of a ZooKeeper with enforce.auth.enabled unless `client` has authenticated."""
        if not self.admits(client):
            raise KeeperError(ErrorCode.SESSION_CLOSED_REQUIRE_SASL_AUTH)

    def add_auth(self, client: "Client", scheme: str, credentials: bytes) -> None:
        """Handle an auth packet; raise KeeperError, after whose reply the connection is closed.

        As in ZooKeeper, any password makes an identity of the scheme `digest`, which only matters for znodes
        whose ACL names it. Only the password of a user authenticates the connection.
        """
        if scheme != "digest":
            raise self._failed(client, scheme, "")
        given_name, _, password = credentials.partition(b":")
        name = given_name.decode(errors="replace")
        expected = self.users.get(name)
        known = password if expected is None else expected.encode()  # the same work for an unknown user
        if hmac.compare_digest(known, password) and expected is not None:
            client.is_authenticated = True
        if not self.admits(client):
            raise self._failed(client, scheme, name)
        _add(client, digest_identity(credentials))

    def sasl(self, client: "Client", token: bytes) -> bytes | None:
        """Return the answer to a token of SASL DIGEST-MD5; raise KeeperError if the client has failed.

        Without users there is no SASL, and the answer is None, as in a ZooKeeper without a JAAS file.
        """
        if not self.users:
            return None
        if client.sasl is None:
            client.sasl = DigestMd5Server(self.users.get)
        try:
            answer = client.sasl.respond(token)
        except AuthenticationFailed as failure:
            raise self._failed(client, "sasl", failure.user) from None
        if client.sasl.user is not None:
            client.is_authenticated = True
            _add(client, Identity("sasl", client.sasl.user.name))
        return answer

    def _failed(self, client: "Client", scheme: str, user: str) -> KeeperError:
        self.failures += 1
        logger.warning(
            "%s failed to authenticate with scheme %.20r as user %.100r", client.address, scheme, user
        )
        return KeeperError(ErrorCode.AUTH_FAILED, scheme)


def _add(client: "Client", identity: Identity) -> None:
    identities = client.requester.identities
    if identity in identities:
        return
    if len(identities) >= MAX_IDENTITIES:
        raise KeeperError(ErrorCode.AUTH_FAILED, f"more than {MAX_IDENTITIES} identities")
    client.requester = client.requester._replace(identities=(*identities, identity))
