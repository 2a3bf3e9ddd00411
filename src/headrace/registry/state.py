"""What a registry knows: subjects, their versions, ids, settings. Records go in, questions are answered.

`apply` is all that changes it, on the first day and at every start. What is to be written is decided
elsewhere (`registering`, `deleting`, `configuring`), which only ask. No clock, no lock, no socket.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Final

from headrace.registry import names
from headrace.registry.fingerprints import fingerprint, read_guid
from headrace.registry.identity import Identity, identity
from headrace.registry.records import (
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DeleteSubjectKey,
    DeleteSubjectValue,
    MaxIdKey,
    MaxIdValue,
    ModeKey,
    Record,
    SchemaKey,
    SchemaValue,
)
from headrace.registry.refusals import NoSuchSchema, NoSuchSubject, NoSuchVersion
from headrace.registry.settings import Settings

LATEST: Final = -1


class Show(Enum):
    """Which versions, or subjects, are meant."""

    LIVE = "live"
    ALL = "all"
    DELETED = "deleted"

    def has(self, *, deleted: bool) -> bool:
        return self is Show.ALL or deleted == (self is Show.DELETED)


class State:
    """All of one registry."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.forgotten = 0  # how often versions went for good: what was concluded from them is void
        self._subjects: dict[str, dict[int, SchemaValue]] = {}
        self._places: dict[str, dict[int, dict[SchemaKey, None]]] = {}  # context, id: who has it
        self._same: dict[str, dict[Identity, int]] = {}  # context, what it says: its id
        self._prints: dict[SchemaKey, bytes] = {}  # fingerprints, and
        self._alike: dict[bytes, dict[SchemaKey, None]] = {}  # who has one, in any context
        self._max_ids: dict[str, int] = {}
        self._noted_ids: dict[str, int] = {}  # the same, as far as a record of its own says so
        self._referrers: dict[SchemaKey, dict[SchemaKey, None]] = {}
        self._contexts: dict[str, None] = {}

    # -- records -------------------------------------------------------------------------------

    def apply(self, record: Record) -> str | None:
        """Take a record in. What is returned says why it was passed over."""
        match record.key, record.value:
            case SchemaKey() as key, SchemaValue() as value:
                return self._take(key, value)
            case SchemaKey() as key, None:
                self._drop(key)
            case (ConfigKey() | ModeKey()) as key, value:
                self.settings.apply(key, value)
            case DeleteSubjectKey(subject), DeleteSubjectValue(last):
                self._delete(subject, last)
            case ClearSubjectKey(subject), value if value is not None:
                self._clear(subject)
            case MaxIdKey(context), MaxIdValue(highest):
                self._max_ids[context] = max(self._max_ids.get(context, 0), highest)
                self._noted_ids[context] = highest
            case ContextKey(context), value:
                self._note_context(context, exists=value is not None)
        return None

    def _take(self, key: SchemaKey, value: SchemaValue) -> str | None:
        context = names.context_of(key.subject)
        self._max_ids[context] = max(self._max_ids.get(context, 0), value.id)
        for other in self._places.get(context, {}).get(value.id, ()):
            has = self._subjects[other.subject][other.version]
            if has.schema.text != value.schema.text:
                return f"id {value.id} is another schema's, version {other.version} of {other.subject}"
        self._forget(key)
        self._subjects.setdefault(key.subject, {})[key.version] = value
        self._places.setdefault(context, {}).setdefault(value.id, {})[key] = None
        self._same.setdefault(context, {})[identity(value)] = value.id
        self._prints[key] = fingerprint(value)
        self._alike.setdefault(self._prints[key], {})[key] = None
        if context != names.DEFAULT_CONTEXT:
            self._contexts[context] = None
        for target in self._targets(value):
            self._referrers.setdefault(target, {})[key] = None
        return None

    def _drop(self, key: SchemaKey) -> None:
        self.forgotten += 1
        self._forget(key)

    def _forget(self, key: SchemaKey) -> None:
        versions = self._subjects.get(key.subject, {})
        value = versions.pop(key.version, None)
        if value is None:
            return
        if not versions:
            del self._subjects[key.subject]
        context = names.context_of(key.subject)
        alike = self._alike[self._prints[key]]
        del alike[key]
        if not alike:
            del self._alike[self._prints[key]]
        del self._prints[key]
        places = self._places[context][value.id]
        del places[key]
        if not places:
            del self._places[context][value.id]
            if self._same[context].get(identity(value)) == value.id:
                del self._same[context][identity(value)]
        for target in self._targets(value):
            self._referrers.get(target, {}).pop(key, None)

    def _delete(self, subject: str, last: int) -> None:
        for value in list(self._subjects.get(subject, {}).values()):
            if value.version <= last and not value.deleted:
                self._subjects[subject][value.version] = as_deleted(value)

    def _clear(self, subject: str | None) -> None:
        for each in self.subjects_of(subject, Show.ALL):
            for value in self.versions(each, Show.DELETED):
                self._drop(SchemaKey(each, value.version))

    def _note_context(self, context: str, *, exists: bool) -> None:
        if exists:
            self._contexts[context] = None
        else:
            self._contexts.pop(context, None)

    @staticmethod
    def _targets(value: SchemaValue) -> Iterator[SchemaKey]:
        for each in value.schema.references:
            yield SchemaKey(names.beside(value.subject, each.subject), each.version)

    # -- subjects and versions -----------------------------------------------------------------

    def subjects(self, prefix: str = names.EVERYWHERE, show: Show = Show.LIVE) -> list[str]:
        """The names of subjects; `:*:` before a prefix has it looked for in every context."""
        everywhere = prefix.startswith(names.EVERYWHERE)
        begins = prefix.removeprefix(names.EVERYWHERE)
        return [
            each
            for each in sorted(self._subjects)
            if (names.parse(each).subject if everywhere else each).startswith(begins)
            and show.has(deleted=all(value.deleted for value in self._subjects[each].values()))
        ]

    def subjects_of(self, subject: str | None, show: Show = Show.LIVE) -> list[str]:
        """The subjects that a setting's name stands for: itself, all of a context, or all."""
        name = None if subject is None else names.parse(subject)
        if name is None or name == (names.GLOBAL_CONTEXT, ""):
            return self.subjects(show=show)
        found = self.subjects(show=show)
        if name.subject == "":
            return [each for each in found if names.context_of(each) == name.context]
        return [each for each in found if each == subject]

    def versions(self, subject: str, show: Show = Show.LIVE) -> list[SchemaValue]:
        """The versions of a subject, the oldest first."""
        found = self._subjects.get(subject, {})
        return [found[each] for each in sorted(found) if show.has(deleted=found[each].deleted)]

    def version(self, subject: str, version: int, show: Show = Show.LIVE) -> SchemaValue:
        """That version; NoSuchSubject or NoSuchVersion if it is not there."""
        if version == LATEST:
            live = self.versions(subject)
            if live:
                return live[-1]
        value = self._subjects.get(subject, {}).get(version)
        if value is not None and show.has(deleted=value.deleted):
            return value
        if not self.versions(subject, show):
            raise NoSuchSubject(subject)
        raise NoSuchVersion(version)

    def contexts(self) -> list[str]:
        return [names.DEFAULT_CONTEXT, *sorted(self._contexts)]

    def has_context(self, context: str) -> bool:
        return context == names.DEFAULT_CONTEXT or context in self._contexts

    def referrers(self, key: SchemaKey, show: Show = Show.LIVE) -> list[SchemaValue]:
        """The versions that refer to this one."""
        found = (self._subjects[each.subject][each.version] for each in self._referrers.get(key, ()))
        return [each for each in found if show.has(deleted=each.deleted)]

    # -- ids -----------------------------------------------------------------------------------

    def by_id(self, schema_id: int, subject: str = "") -> SchemaValue:
        """The schema of this id, as `subject` has it if it does; without a context, any context's will do."""
        name = names.parse(subject)
        at_home = self.places(schema_id, name.context)
        elsewhere = self.contexts() if name.subject and name.context == names.DEFAULT_CONTEXT else []
        for context in [name.context, *elsewhere]:
            wanted = str(names.Name(context, name.subject))
            for value in reversed(self.places(schema_id, context)):
                if value.subject == wanted:
                    return value
        if not at_home:
            raise NoSuchSchema(schema_id)
        return at_home[0]

    def places(self, schema_id: int, context: str = names.DEFAULT_CONTEXT) -> list[SchemaValue]:
        """The versions, deleted ones included, that have this id."""
        found = self._places.get(context, {}).get(schema_id, ())
        return sorted(
            (self._subjects[each.subject][each.version] for each in found),
            key=lambda each: (each.subject, each.version),
        )

    def by_guid(self, guid: str) -> SchemaValue:
        """The schema that is called so in every registry: of the default context, if that has it."""
        wanted = read_guid(guid)
        for value in [] if wanted is None else self.alike(wanted):
            return value
        raise NoSuchSchema(guid)

    def alike(self, wanted: bytes) -> list[SchemaValue]:
        """The versions, deleted ones included, that have this fingerprint; the default context's first."""
        return sorted(
            (self._subjects[each.subject][each.version] for each in self._alike.get(wanted, ())),
            key=lambda each: (names.context_of(each.subject), each.subject, each.version),
        )

    def fingerprint_of(self, value: SchemaValue) -> bytes:
        """That of a version that is there."""
        return self._prints[SchemaKey(value.subject, value.version)]

    def id_of(self, value: SchemaValue) -> int | None:
        """The id that a schema which says the same has in this context."""
        return self._same.get(names.context_of(value.subject), {}).get(identity(value))

    def max_id(self, context: str) -> int:
        """The highest id that was ever given out in this context."""
        return self._max_ids.get(context, 0)

    def note_of_ids(self, context: str) -> list[Record]:
        """To be written when schemas go for good: their ids are not given out again, not after a restart."""
        highest = self.max_id(context)
        if highest <= self._noted_ids.get(context, 0):
            return []
        return [Record(MaxIdKey(context), MaxIdValue(highest))]


def as_deleted(value: SchemaValue) -> SchemaValue:
    return SchemaValue(
        value.subject, value.version, value.id, value.schema, value.metadata, value.rule_set, deleted=True
    )
