"""JSON schemas, with the documents that their $refs lead to."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from headrace.registry.formats.differences import Differences
from headrace.registry.formats.json.keywords import Node
from headrace.registry.formats.json.resources import Resources
from headrace.registry.formats.json.text import dump, load
from headrace.registry.formats.schema import InvalidSchema, Reference, Schema, SchemaType


@dataclass(frozen=True)
class JsonSchema:
    """A JSON schema that is valid in its draft, and in which every $ref has a target."""

    root: Node
    references: tuple[Reference, ...]
    resources: Resources = field(repr=False)
    type: SchemaType = SchemaType.JSON

    @cached_property
    def canonical(self) -> str:
        """The submitted text without spaces."""
        return dump(self.root)

    @cached_property
    def normalized(self) -> str:
        return dump(self.root, sort_keys=True)

    def formatted(self, how: str) -> str:  # noqa: ARG002 - there is only one form
        return self.canonical

    def differences(self, writer: "JsonSchema") -> Differences:
        from headrace.registry.formats.json import compatibility as json_compatibility  # noqa: PLC0415  decoders do not need it

        return json_compatibility.differences(self.root, self.resources, writer.root, writer.resources)


def parse(schema: Schema, referenced: Sequence[tuple[str, Schema]]) -> JsonSchema:
    """Return the schema parsed; each of `referenced` comes after the schemas that it refers to."""
    resources = Resources()
    for name, other in referenced:
        try:
            resources.add(name, load(other.text))
        except InvalidSchema as error:
            raise InvalidSchema(f"In the referenced schema {name!r}: {error}") from error
    root = load(schema.text)
    resources.add("", root)
    resources.check_references()
    return JsonSchema(root, schema.references, resources)
