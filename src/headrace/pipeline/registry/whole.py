"""A schema with everything that it refers to: executors understand it without asking anybody."""

from dataclasses import dataclass

from headrace.registry.formats import InvalidSchema, Parsed, Reference, Schema, parse


@dataclass(frozen=True, slots=True)
class Whole:
    """A schema, and the schemas that it and they refer to."""

    schema: Schema
    referenced: tuple[tuple[Reference, Schema], ...] = ()

    def parsed(self) -> Parsed:
        """The schema, understood; InvalidSchema if it is none."""
        return parse(self.schema, self._resolve)

    @property
    def documents(self) -> dict[str, str]:
        """What it refers to, by the names that it uses."""
        return {reference.name: schema.text for reference, schema in self.referenced}

    def _resolve(self, reference: Reference) -> Schema:
        found = dict(self.referenced).get(reference)
        if found is None:
            raise InvalidSchema(f"the reference {reference.name} leads nowhere")
        return found
