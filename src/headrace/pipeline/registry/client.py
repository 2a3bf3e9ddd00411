"""Schemas out of a registry, with what they refer to; while it is away, some patience."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

from headrace.client.errors import ClientError, Unreachable
from headrace.client.schemas.http import RegistryError
from headrace.client.schemas.registry import Registered
from headrace.client.schemas.registry import Registry as Client
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.registry.whole import Whole
from headrace.registry.formats import InvalidSchema, Reference, Schema, SchemaType
from headrace.registry.formats.limits import MAX_REFERENCES

TIMEOUT_S: Final = 10.0
SCHEMA_NOT_FOUND: Final = 40403
_FIRST_S: Final = 0.1
_LONGEST_S: Final = 5.0
_REFUSED: Final = frozenset({401, 403})
_STATUSES: Final = 100  # a registry's number for a refusal begins with HTTP's

Found = TypeVar("Found")
logger = logging.getLogger(__name__)


Ref = int | bytes
"""A schema, by its id or by the 16 bytes of its fingerprint."""


class UnknownSchema(Exception):
    """The registry is there, and has no such schema."""


class Schemas:
    """The schemas of one registry. ClientError, as it came, if it refuses or does not answer."""

    def __init__(self, url: str) -> None:
        self._client = Client(url, timeout_s=TIMEOUT_S)

    def version(self, subject: str, version: int | str) -> tuple[Registered, Whole]:
        """A version of a subject, or "latest"."""
        found = self._client.get(subject, version)
        return found, self._whole(found)

    def one(self, ref: Ref) -> Whole:
        """The schema; UnknownSchema if there is none, InvalidSchema if we know no such format."""
        try:
            found = self._client.by_id(ref) if isinstance(ref, int) else self._client.by_guid(shown(ref))
            return self._whole(found)
        except RegistryError as error:
            if error.code == SCHEMA_NOT_FOUND:
                raise UnknownSchema(shown(ref)) from error
            raise

    def _whole(self, found: Registered) -> Whole:
        root = _schema(found)
        followed: dict[Reference, Schema] = {}
        waiting = list(root.references)
        while waiting:
            reference = waiting.pop()
            if reference in followed:
                continue
            if len(followed) == MAX_REFERENCES:
                raise InvalidSchema(f"the schema refers to more than {MAX_REFERENCES} others")
            followed[reference] = _schema(
                self._client.get(reference.subject, reference.version, deleted=True)
            )
            waiting += followed[reference].references
        return Whole(root, tuple(followed.items()))


@dataclass(frozen=True, slots=True)
class Clock:
    """What waiting needs."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def patiently(
    what: str,
    ask: Callable[[], Found],
    patience_s: float,
    clock: Clock = Clock(),  # noqa: B008
) -> Found:
    """What `ask` returns, asked again while the registry is away; PipelineError when patience is at its end.

    That the registry is away is not the fault of any row: nothing may be decided about one.
    """
    deadline = clock.now() + patience_s
    pause_s = _FIRST_S
    while True:
        try:
            return ask()
        except ClientError as error:
            if not _passes(error) or clock.now() + pause_s > deadline:
                raise PipelineError(f"{what} cannot be had: {error}") from error
            logger.warning("%s cannot be had, asking again in %.1f s: %s", what, pause_s, error)
        clock.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_S)


def shown(ref: Ref) -> str:
    """A schema as people call it."""
    return str(ref) if isinstance(ref, int) else str(UUID(bytes=ref))


def _passes(error: ClientError) -> bool:
    """Whether it may be otherwise in a while: a password does not become right by waiting."""
    if isinstance(error, RegistryError):
        return error.code // _STATUSES not in _REFUSED and error.code not in _REFUSED
    return isinstance(error, Unreachable)


def _schema(found: Registered) -> Schema:
    if found.type not in set(SchemaType):
        raise InvalidSchema(f"it is of the format {found.type}, and not {', '.join(SchemaType)}")
    references = (Reference(each.name, each.subject, each.version) for each in found.references)
    return Schema(SchemaType(found.type), found.schema, tuple(references))
