"""From a schema as given to one that is understood, with everything that it refers to."""

from headrace.registry.formats.schema import Parsed, Resolve, Schema


def parse(schema: Schema, resolve: Resolve) -> Parsed:
    """The schema, understood; `InvalidSchema` if it is none.

    `resolve` gives a referenced schema, or raises `InvalidSchema` if there is none; it is asked for what
    that one refers to as well, each once.
    """
    raise NotImplementedError
