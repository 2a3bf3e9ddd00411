"""Schemas, understood: with everything they refer to, and remembered, for understanding takes time."""

from collections import OrderedDict
from dataclasses import replace
from typing import Final

from headrace.registry import names
from headrace.registry.comparing import Comparing
from headrace.registry.formats import InvalidSchema, Parsed, Reference, Resolve, Schema, parse
from headrace.registry.records import SchemaValue
from headrace.registry.refusals import Invalid, Refusal
from headrace.registry.state import LATEST, Show, State

REMEMBERED: Final = 1000


class Library:
    """The schemas of a state, and those that want to be."""

    def __init__(self, state: State, remembered: int = REMEMBERED) -> None:
        self._state = state
        self._remembered = remembered
        self._parsed: OrderedDict[tuple[str, Schema], Parsed] = OrderedDict()
        self._forgotten = state.forgotten
        self.comparing = Comparing()

    def parsed(self, subject: str, schema: Schema) -> Parsed:
        """A schema as one of `subject`, in whose context its references are; Invalid if it is none."""
        found = self.remembered(subject, schema)
        if found is None:
            found = understood(schema, lambda reference: self.resolved(subject, reference))
            self.remember(subject, schema, found)
        return found

    def remembered(self, subject: str, schema: Schema) -> Parsed | None:
        """The same if it has been understood before."""
        if self._forgotten != self._state.forgotten:  # a reference may be to something else by now
            self._parsed.clear()
            self._forgotten = self._state.forgotten
        key = names.context_of(subject), schema
        if key in self._parsed:
            self._parsed.move_to_end(key)
        return self._parsed.get(key)

    def remember(self, subject: str, schema: Schema, parsed: Parsed) -> None:
        self._parsed[names.context_of(subject), schema] = parsed
        if len(self._parsed) > self._remembered:
            self._parsed.popitem(last=False)

    def kept(self, value: SchemaValue) -> Parsed:
        """A version that is there; Invalid if another registry has taken what we do not understand."""
        try:
            return self.parsed(value.subject, value.schema)
        except Invalid as error:
            raise Invalid(
                f"version {value.version} of {value.subject} cannot be understood: {error}"
            ) from error

    def pinned(self, subject: str, schema: Schema) -> Schema:
        """The schema with numbers where it refers to the newest version of a subject, whatever that is."""
        if all(each.version != LATEST for each in schema.references):
            return schema
        return replace(schema, references=tuple(self._pinned(subject, each) for each in schema.references))

    def _pinned(self, parent: str, reference: Reference) -> Reference:
        live = self._state.versions(names.beside(parent, reference.subject))
        if reference.version != LATEST or not live:
            return reference
        return replace(reference, version=live[-1].version)

    def check_live(self, parent: str, schema: Schema) -> None:
        """Invalid if it refers to what is deleted: only what is there already may."""
        for each in schema.references:
            subject = names.beside(parent, each.subject)
            if each.version not in {live.version for live in self._state.versions(subject)}:
                what = f"version {each.version} of {subject}, which is deleted or was never there"
                raise Invalid(f"the reference {each.name} is to {what}")

    def resolved(self, parent: str, reference: Reference) -> Schema:
        """What `parent` refers to, which in turn names its references in a way that is good anywhere."""
        subject = names.beside(parent, reference.subject)
        try:
            found = self._state.version(subject, reference.version, Show.ALL).schema
        except Refusal as error:
            raise InvalidSchema(
                f"the reference {reference.name} is to version {reference.version} of {subject}: {error}"
            ) from error
        qualified = tuple(
            replace(each, subject=names.beside(subject, each.subject)) for each in found.references
        )
        return replace(found, references=qualified)


def understood(schema: Schema, resolve: Resolve) -> Parsed:
    """The schema; Invalid if it is none. That takes its time, and needs nothing but `resolve`."""
    if not schema.text.strip():
        raise Invalid("Empty schema")
    try:
        return parse(schema, resolve)
    except InvalidSchema as error:
        raise Invalid(f"Invalid schema of type {schema.type}, details: {error}") from error
