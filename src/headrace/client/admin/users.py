"""Users with SCRAM credentials. Passwords are salted and hashed here: no broker ever sees one.

UserAdmin(Brokers("127.0.0.1:9092")).create_user("alice", "...")
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headrace.client.errors import BadSetting, ClientError, raise_for
from headrace.client.wire.brokers import Brokers
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.protocol.schema.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from headrace.security.sasl.exchange import SCRAM_SHA_256, SCRAM_SHA_512
from headrace.security.sasl.scram import ALGORITHMS

MECHANISMS: Final = (SCRAM_SHA_512, SCRAM_SHA_256)
ITERATIONS: Final = 8192  # Kafka accepts 4096 to 16384
_NUMBERS: Final = {SCRAM_SHA_256: 1, SCRAM_SHA_512: 2}
_NAMES: Final = {number: name for name, number in _NUMBERS.items()}
_SALT_BYTES: Final = 32


class NoSuchUser(ClientError):
    """There is no user of this name with SCRAM credentials."""

    def __init__(self, user: str) -> None:
        super().__init__(f"there is no user {user} with a SCRAM credential")


class UserExists(ClientError):
    """There is a user of this name already."""

    def __init__(self, user: str) -> None:
        super().__init__(f"user {user} exists already: `headrace user password {user}` changes the password")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What is known of a credential: its mechanism, and how often the password was hashed."""

    mechanism: str
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user who can authenticate with a password."""

    name: str
    credentials: tuple[Credential, ...]


class UserAdmin:
    """Creates, lists and removes users. Every call waits for its answer, or raises ClientError."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers

    def list_users(self, names: Sequence[str] | None = None) -> list[User]:
        """Return these users, or all, by name; those that do not exist are left out."""
        asked = None if names is None else [UserName(name=each) for each in names]
        answer = self._brokers.any(DescribeUserScramCredentialsRequest(users=asked))
        raise_for(answer.error_code, answer.error_message)
        found = []
        for result in answer.results:
            if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
                continue
            raise_for(result.error_code, result.error_message, f"user {result.user}")
            infos = sorted(result.credential_infos, key=lambda info: int(info.mechanism))
            credentials = tuple(
                Credential(
                    mechanism=_NAMES.get(info.mechanism, f"mechanism {info.mechanism}"),
                    iterations=info.iterations,
                )
                for info in infos
            )
            found.append(User(name=result.user, credentials=credentials))
        return sorted(found, key=lambda user: user.name)

    def describe_user(self, name: str) -> User:
        """Return the user; NoSuchUser if there is none."""
        users = self.list_users([name])
        if not users:
            raise NoSuchUser(name)
        return users[0]

    def create_user(
        self,
        name: str,
        password: str,
        *,
        mechanisms: Sequence[str] = (SCRAM_SHA_512,),
        iterations: int = ITERATIONS,
    ) -> None:
        """Create a user who authenticates by SCRAM; UserExists if there is one."""
        if self.list_users([name]):
            raise UserExists(name)
        self._upsert(name, password, mechanisms, iterations)

    def set_user_password(
        self,
        name: str,
        password: str,
        *,
        mechanisms: Sequence[str] = (SCRAM_SHA_512,),
        iterations: int = ITERATIONS,
    ) -> None:
        """Change the password of a user for these mechanisms; NoSuchUser if there is none."""
        self.describe_user(name)
        self._upsert(name, password, mechanisms, iterations)

    def _upsert(self, name: str, password: str, mechanisms: Sequence[str], iterations: int) -> None:
        if not password:
            raise BadSetting("a password cannot be empty")
        upsertions = []
        for mechanism in dict.fromkeys(mechanisms):
            number, salt = _number(mechanism), secrets.token_bytes(_SALT_BYTES)
            salted = hashlib.pbkdf2_hmac(ALGORITHMS[mechanism], password.encode(), salt, iterations)
            upsertions.append(
                ScramCredentialUpsertion(
                    name=name, mechanism=number, iterations=iterations, salt=salt, salted_password=salted
                )
            )
        self._alter(AlterUserScramCredentialsRequest(deletions=[], upsertions=upsertions))

    def remove_user(self, name: str, *, mechanisms: Sequence[str] | None = None) -> User:
        """Remove the user, or only the credentials of some mechanisms; return the user as it was."""
        user = self.describe_user(name)
        wanted = [each.mechanism for each in user.credentials] if mechanisms is None else list(mechanisms)
        deletions = [ScramCredentialDeletion(name=name, mechanism=_number(each)) for each in wanted]
        self._alter(AlterUserScramCredentialsRequest(deletions=deletions, upsertions=[]))
        return user

    def _alter(self, request: AlterUserScramCredentialsRequest) -> None:
        for result in self._brokers.any(request).results:
            raise_for(result.error_code, result.error_message, f"user {result.user}")


def _number(mechanism: str) -> int:
    if mechanism not in _NUMBERS:
        raise BadSetting(f"mechanism {mechanism!r}: expected {' or '.join(MECHANISMS)}")
    return _NUMBERS[mechanism]
