"""Schemas of a registry, with everything that they refer to; requests are retried while it is unreachable."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from headrace.client.errors import ClientError, Unreachable
from headrace.client.schemas.records import schema_of
from headrace.client.schemas.registry import Registered, RegistryError
from headrace.client.schemas.registry import RegistryClient as Client
from headrace.client.wire.config_providers import resolve
from headrace.registry.formats import InvalidSchema, Reference, Schema
from headrace.registry.formats.limits import MAX_REFERENCES
from headrace.registry.schema_ids import SchemaRef, format_ref
from headrace.tables.reader.errors import ReadError
from headrace.tables.registry.reader import ResolvedSchema

TIMEOUT_S: Final = 10.0
SCHEMA_NOT_FOUND: Final = 40403
_MIN_BACKOFF_S: Final = 0.1
_MAX_BACKOFF_S: Final = 5.0
_MAX_COMPARED: Final = 100  # versions of a subject
_URL: Final = "Registry.url"
_UNAUTHORIZED: Final = frozenset({401, 403})

Found = TypeVar("Found")
logger = logging.getLogger(__name__)


class UnknownSchema(Exception):
    """The registry has no such schema."""


class NewerSchema(ReadError):
    """The subject has a newer version than that of the columns, and the reader follows its versions."""


class Schemas:
    """The schemas of one registry. ClientError is raised if it refuses a request or does not answer.

    The URL may have references such as ${env:PASSWORD}, which are resolved here: plans have the reference.
    """

    def __init__(self, registry: str | Client) -> None:
        """`registry` is a URL, or a client."""
        if isinstance(registry, str):
            registry = Client(resolve({_URL: registry})[_URL], timeout_s=TIMEOUT_S)
        self._client = registry

    @property
    def address(self) -> str:
        """The registry's URL, without a password."""
        return self._client.url

    def version(self, subject: str, version: int | str) -> tuple[Registered, ResolvedSchema]:
        found = self._client.get(subject, version)
        return found, self._resolved(found)

    def latest(self, subject: str) -> int:
        version = self._client.get(subject, "latest").version
        assert version is not None, subject
        return version

    def is_newer(self, schema: ResolvedSchema, subject: str, version: int) -> bool:
        """Return whether a schema is one of the latest versions of a subject, after `version`."""
        later = [each for each in self._client.versions(subject) if each > version]
        return any(
            schema_of(self._client.get(subject, each)) == schema.schema for each in later[-_MAX_COMPARED:]
        )

    def get(self, ref: SchemaRef) -> ResolvedSchema:
        """Return a schema; UnknownSchema if there is none, InvalidSchema if its format is unknown."""
        try:
            found = self._client.by_id(ref) if isinstance(ref, int) else self._client.by_guid(format_ref(ref))
            return self._resolved(found)
        except RegistryError as error:
            if error.code == SCHEMA_NOT_FOUND:
                raise UnknownSchema(format_ref(ref)) from error
            raise

    def _resolved(self, found: Registered) -> ResolvedSchema:
        root = schema_of(found)
        referenced: dict[Reference, Schema] = {}
        waiting = list(root.references)
        while waiting:
            reference = waiting.pop()
            if reference in referenced:
                continue
            if len(referenced) == MAX_REFERENCES:
                raise InvalidSchema(f"the schema refers to more than {MAX_REFERENCES} others")
            version = self._client.get(reference.subject, reference.version, deleted=True)
            referenced[reference] = schema_of(version)
            waiting += referenced[reference].references
        return ResolvedSchema(root, tuple(referenced.items()))


@dataclass(frozen=True, slots=True)
class Clock:
    """The time, which tests replace."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def retry_while_unreachable(
    what: str,
    request: Callable[[], Found],
    patience_s: float,
    clock: Clock = Clock(),  # noqa: B008
) -> Found:
    """Return the result of `request`, retried with backoff; ReadError if it fails for `patience_s`.

    The batch fails then: no row can be blamed for a registry that is unreachable.
    """
    deadline = clock.now() + patience_s
    backoff_s = _MIN_BACKOFF_S
    while True:
        try:
            return request()
        except ClientError as error:
            if not _is_retriable(error) or clock.now() + backoff_s > deadline:
                raise ReadError(f"{what} cannot be fetched: {error}") from error
            logger.warning("%s cannot be fetched, retrying in %.1f s: %s", what, backoff_s, error)
        clock.sleep(backoff_s)
        backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)


def _is_retriable(error: ClientError) -> bool:
    if isinstance(error, RegistryError):
        return int(str(error.code)[:3]) not in _UNAUTHORIZED
    return isinstance(error, Unreachable)
