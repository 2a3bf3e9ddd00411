"""The state of a registry: subjects, versions, ids and settings, built from the records of `_schemas`.

Only `apply` changes it, for new records as for a replay. `registration`, `deletion` and `configuration`
decide which records to append and only read the state. No clock, no lock, no socket.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum
from typing import Final

from headrace.registry import names, records
from headrace.registry.fingerprints import Identity, fingerprint, identity, read_guid
from headrace.registry.refusals import NoSuchSchema, NoSuchSubject, NoSuchVersion
from headrace.registry.settings import Settings

LATEST: Final = -1


class Show(Enum):
    """Which versions or subjects to return: a subject is deleted if all its versions are."""

    LIVE = "live"
    ALL = "all"
    DELETED = "deleted"

    def has(self, *, deleted: bool) -> bool:
        return self is Show.ALL or deleted == (self is Show.DELETED)


class RegistryState:
    def __init__(self) -> None:
        self.settings = Settings()
        self.permanent_deletions = 0  # counted: each invalidates what was derived from references
        self._subjects: dict[str, dict[int, records.SchemaValue]] = {}
        self._by_id: dict[str, dict[int, dict[records.SchemaKey, None]]] = {}  # by context, then id
        self._ids: dict[str, dict[Identity, int]] = {}  # by context, then identity
        self._fingerprints: dict[records.SchemaKey, bytes] = {}
        self._by_fingerprint: dict[bytes, dict[records.SchemaKey, None]] = {}  # in all contexts
        self._max_ids: dict[str, int] = {}
        self._recorded_max_ids: dict[str, int] = {}  # those that a MaxIdKey record has stored
        self._referrers: dict[records.SchemaKey, dict[records.SchemaKey, None]] = {}
        self._contexts: dict[str, None] = {}

    def apply(self, record: records.Record) -> str | None:
        """Apply a record; return the reason if it was skipped."""
        match record.key, record.value:
            case records.SchemaKey() as key, records.SchemaValue() as value:
                return self._add(key, value)
            case records.SchemaKey() as key, None:
                self._delete_permanently(key)
            case (records.ConfigKey() | records.ModeKey()) as key, value:
                self.settings.apply(key, value)
            case records.DeleteSubjectKey(subject), records.DeleteSubjectValue(last):
                self._soft_delete(subject, last)
            case records.ClearSubjectKey(subject), value if value is not None:
                self._clear(subject)
            case records.MaxIdKey(context), records.MaxIdValue(highest):
                self._max_ids[context] = max(self._max_ids.get(context, 0), highest)
                self._recorded_max_ids[context] = highest
            case records.ContextKey(context), value:
                if value is None:
                    self._contexts.pop(context, None)
                else:
                    self._contexts[context] = None
        return None

    def _add(self, key: records.SchemaKey, value: records.SchemaValue) -> str | None:
        context = names.context_of(key.subject)
        self._max_ids[context] = max(self._max_ids.get(context, 0), value.id)
        for other in self._by_id.get(context, {}).get(value.id, ()):
            has = self._subjects[other.subject][other.version]
            if has.schema.text != value.schema.text:
                return f"id {value.id} is that of another schema, version {other.version} of {other.subject}"
        self._remove(key)
        self._subjects.setdefault(key.subject, {})[key.version] = value
        self._by_id.setdefault(context, {}).setdefault(value.id, {})[key] = None
        self._ids.setdefault(context, {})[identity(value)] = value.id
        self._fingerprints[key] = fingerprint(value)
        self._by_fingerprint.setdefault(self._fingerprints[key], {})[key] = None
        if context != names.DEFAULT_CONTEXT:
            self._contexts[context] = None
        for target in self._targets(value):
            self._referrers.setdefault(target, {})[key] = None
        return None

    def _delete_permanently(self, key: records.SchemaKey) -> None:
        self.permanent_deletions += 1
        self._remove(key)

    def _remove(self, key: records.SchemaKey) -> None:
        versions = self._subjects.get(key.subject, {})
        value = versions.pop(key.version, None)
        if value is None:
            return
        if not versions:
            del self._subjects[key.subject]
        context = names.context_of(key.subject)
        alike = self._by_fingerprint[self._fingerprints[key]]
        del alike[key]
        if not alike:
            del self._by_fingerprint[self._fingerprints[key]]
        del self._fingerprints[key]
        keys = self._by_id[context][value.id]
        del keys[key]
        if not keys:
            del self._by_id[context][value.id]
            if self._ids[context].get(identity(value)) == value.id:
                del self._ids[context][identity(value)]
        for target in self._targets(value):
            self._referrers.get(target, {}).pop(key, None)

    def _soft_delete(self, subject: str, last: int) -> None:
        for value in list(self._subjects.get(subject, {}).values()):
            if value.version <= last and not value.deleted:
                self._subjects[subject][value.version] = replace(value, deleted=True)

    def _clear(self, subject: str | None) -> None:
        for each in self.subjects_of(subject, Show.ALL):
            for value in self.versions(each, Show.DELETED):
                self._delete_permanently(records.SchemaKey(each, value.version))

    @staticmethod
    def _targets(value: records.SchemaValue) -> Iterator[records.SchemaKey]:
        for reference in value.schema.references:
            yield records.SchemaKey(names.qualified(value.subject, reference.subject), reference.version)

    def subjects(self, prefix: str = names.EVERYWHERE, show: Show = Show.LIVE) -> list[str]:
        """Return the names of subjects; a prefix that starts with `:*:` is searched for in every context."""
        everywhere = prefix.startswith(names.EVERYWHERE)
        begins = prefix.removeprefix(names.EVERYWHERE)
        return [
            subject
            for subject in sorted(self._subjects)
            if (names.parse(subject).subject if everywhere else subject).startswith(begins)
            and show.has(deleted=all(value.deleted for value in self._subjects[subject].values()))
        ]

    def subjects_of(self, subject: str | None, show: Show = Show.LIVE) -> list[str]:
        """Return the subjects that a setting applies to: the subject itself, all of a context, or all."""
        name = None if subject is None else names.parse(subject)
        if name is None or name == (names.GLOBAL_CONTEXT, ""):
            return self.subjects(show=show)
        found = self.subjects(show=show)
        if name.subject == "":
            return [each for each in found if names.context_of(each) == name.context]
        return [each for each in found if each == subject]

    def versions(self, subject: str, show: Show = Show.LIVE) -> list[records.SchemaValue]:
        found = self._subjects.get(subject, {})
        return [found[each] for each in sorted(found) if show.has(deleted=found[each].deleted)]

    def version(self, subject: str, version: int, show: Show = Show.LIVE) -> records.SchemaValue:
        """Return a version; NoSuchSubject or NoSuchVersion if it does not exist."""
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

    def referrers(self, key: records.SchemaKey, show: Show = Show.LIVE) -> list[records.SchemaValue]:
        found = self._values(self._referrers.get(key, ()))
        return [value for value in found if show.has(deleted=value.deleted)]

    def by_id(self, schema_id: int, subject: str = "") -> records.SchemaValue:
        """Return the schema of an id, the version of `subject` if there is one.

        A subject without a context is looked for in all contexts.
        """
        name = names.parse(subject)
        at_home = self.versions_with_id(schema_id, name.context)
        elsewhere = self.contexts() if name.subject and name.context == names.DEFAULT_CONTEXT else []
        for context in [name.context, *elsewhere]:
            wanted = str(names.Name(context, name.subject))
            for value in reversed(self.versions_with_id(schema_id, context)):
                if value.subject == wanted:
                    return value
        if not at_home:
            raise NoSuchSchema(schema_id)
        return at_home[0]

    def versions_with_id(
        self, schema_id: int, context: str = names.DEFAULT_CONTEXT
    ) -> list[records.SchemaValue]:
        """Return the versions that have this id, deleted ones included."""
        found = self._values(self._by_id.get(context, {}).get(schema_id, ()))
        return sorted(found, key=lambda each: (each.subject, each.version))

    def by_guid(self, guid: str) -> records.SchemaValue:
        """Return the schema with this fingerprint, preferably of the default context."""
        parsed = read_guid(guid)
        found = [] if parsed is None else self.versions_with_fingerprint(parsed)
        if not found:
            raise NoSuchSchema(guid)
        return found[0]

    def versions_with_fingerprint(self, wanted: bytes) -> list[records.SchemaValue]:
        """Return the versions with this fingerprint, deleted ones included, by context, subject, version."""
        return sorted(
            self._values(self._by_fingerprint.get(wanted, ())),
            key=lambda value: (names.context_of(value.subject), value.subject, value.version),
        )

    def _values(self, keys: Iterable[records.SchemaKey]) -> Iterator[records.SchemaValue]:
        return (self._subjects[key.subject][key.version] for key in keys)

    def fingerprint_of(self, value: records.SchemaValue) -> bytes:
        return self._fingerprints[records.SchemaKey(value.subject, value.version)]

    def id_of(self, value: records.SchemaValue) -> int | None:
        """Return the id of an equal schema in the context."""
        return self._ids.get(names.context_of(value.subject), {}).get(identity(value))

    def max_id(self, context: str) -> int:
        """Return the highest id that the context has ever assigned."""
        return self._max_ids.get(context, 0)

    def max_id_records(self, context: str) -> list[records.Record]:
        """Return the record that keeps permanently deleted ids from being assigned again after a replay."""
        highest = self.max_id(context)
        if highest <= self._recorded_max_ids.get(context, 0):
            return []
        return [records.Record(records.MaxIdKey(context), records.MaxIdValue(highest))]
