"""JSON Schema: a document, and the documents that its $refs lead to."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from headrace.registry.formats.json_keywords import Node
from headrace.registry.formats.json_resources import Resources
from headrace.registry.formats.json_text import dump, load
from headrace.registry.formats.schema import InvalidSchema, Reference, Schema, SchemaType


@dataclass(frozen=True)
class JsonSchema:
    """A JSON schema that is valid in its draft, and whose references all lead somewhere."""

    root: Node
    references: tuple[Reference, ...]
    resources: Resources = field(repr=False)
    type: SchemaType = SchemaType.JSON

    @cached_property
    def canonical(self) -> str:
        """The text as given, without spaces."""
        return dump(self.root)

    @cached_property
    def normalized(self) -> str:
        return dump(self.root, sort_keys=True)

    def formatted(self, how: str) -> str:  # noqa: ARG002 - there is no other form than the one
        return self.canonical


def parse(schema: Schema, referenced: Sequence[tuple[str, Schema]]) -> JsonSchema:
    """`referenced` has what the schema refers to, with what that refers to before it."""
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
