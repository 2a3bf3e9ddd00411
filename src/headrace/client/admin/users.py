"""Users with SCRAM credentials. Passwords are salted and hashed here: no broker ever sees one.

UserAdmin(Brokers("127.0.0.1:9092")).set_password("alice", "...", ["SCRAM-SHA-512"])
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

    def users(self, names: Sequence[str] | None = None) -> list[User]:
        """Return these users, or all, by name; those that do not exist are left out."""
        asked = None if names is None else [UserName(name=each) for each in names]
        answer = self._brokers.any(DescribeUserScramCredentialsRequest(users=asked))
        raise_for(answer.error_code, answer.error_message)
        found = []
        for each in answer.results:
            if each.error_code == ErrorCode.RESOURCE_NOT_FOUND:
                continue
            raise_for(each.error_code, each.error_message, f"user {each.user}")
            infos = sorted(each.credential_infos, key=lambda info: int(info.mechanism))
            credentials = tuple(_credential(info.mechanism, info.iterations) for info in infos)
            found.append(User(name=each.user, credentials=credentials))
        return sorted(found, key=lambda user: user.name)

    def user(self, name: str) -> User:
        """Return the user; NoSuchUser if there is none."""
        found = self.users([name])
        if not found:
            raise NoSuchUser(name)
        return found[0]

    def create(self, name: str, password: str, mechanisms: Sequence[str], iterations: int) -> None:
        """Create a user with this password; UserExists if there is one."""
        if self.users([name]):
            raise UserExists(name)
        self.set_password(name, password, mechanisms, iterations)

    def set_password(
        self,
        name: str,
        password: str,
        mechanisms: Sequence[str] = (SCRAM_SHA_512,),
        iterations: int = ITERATIONS,
    ) -> None:
        """Give the user, new or not, this password; credentials of other mechanisms stay as they are."""
        if not password:
            raise BadSetting("a password cannot be empty")
        upsertions = [_upsertion(name, password, each, iterations) for each in dict.fromkeys(mechanisms)]
        self._alter(AlterUserScramCredentialsRequest(deletions=[], upsertions=upsertions))

    def remove(self, name: str, mechanisms: Sequence[str] | None = None) -> User:
        """Remove the user, or only the credentials of some mechanisms; return the user as it was."""
        user = self.user(name)
        wanted = [each.mechanism for each in user.credentials] if mechanisms is None else list(mechanisms)
        deletions = [ScramCredentialDeletion(name=name, mechanism=_number(each)) for each in wanted]
        self._alter(AlterUserScramCredentialsRequest(deletions=deletions, upsertions=[]))
        return user

    def _alter(self, request: AlterUserScramCredentialsRequest) -> None:
        for each in self._brokers.any(request).results:
            raise_for(each.error_code, each.error_message, f"user {each.user}")


def _upsertion(name: str, password: str, mechanism: str, iterations: int) -> ScramCredentialUpsertion:
    number = _number(mechanism)
    salt = secrets.token_bytes(_SALT_BYTES)
    salted = hashlib.pbkdf2_hmac(ALGORITHMS[mechanism], password.encode(), salt, iterations)
    return ScramCredentialUpsertion(
        name=name, mechanism=number, iterations=iterations, salt=salt, salted_password=salted
    )


def _number(mechanism: str) -> int:
    if mechanism not in _NUMBERS:
        raise BadSetting(f"mechanism {mechanism!r}: expected {' or '.join(MECHANISMS)}")
    return _NUMBERS[mechanism]


def _credential(number: int, iterations: int) -> Credential:
    return Credential(mechanism=_NAMES.get(number, f"mechanism {number}"), iterations=iterations)
