"""The number of schemas that one value is validated by, with every $ref expanded.

A short schema may refer to another twice, and that one to a third twice: n of these expand to 2^n schemas.
"""

from typing import Any, Final

from headrace.registry.formats.json_keywords import REFS, known
from headrace.registry.formats.json_resources import Resources
from headrace.registry.formats.limits import MAX_EXPANSION

_ONE: Final = ("not", "if", "then", "else")
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_MAPS: Final = ("dependentSchemas", "dependencies")


def expansion(resources: Resources) -> int:
    """Return the largest number of schemas that any one value is validated by, at most MAX_EXPANSION + 1.

    Schemas of the value's properties and items are not counted.
    """
    sizes: dict[int, int] = {}
    waiting = [(node, False) for node in resources.nodes]
    while waiting:
        node, are_inner_measured = waiting.pop()
        if are_inner_measured:
            size = 1 + sum(sizes[id(each)] for each in _inner(node, resources))
            sizes[id(node)] = min(size, MAX_EXPANSION + 1)
        elif id(node) not in sizes:
            sizes[id(node)] = 1  # a schema that refers back to itself counts as one
            waiting.append((node, True))
            waiting += [(each, False) for each in _inner(node, resources) if id(each) not in sizes]
    return max(sizes.values(), default=1)


def _inner(node: dict[str, Any], resources: Resources) -> list[dict[str, Any]]:
    scope = resources.scope(node)
    keywords = known(node, scope.draft)
    refs = (keywords.get(name) for name in REFS)
    found: list[Any] = [resources.target(ref, scope) for ref in refs if isinstance(ref, str)]
    found += [keywords[name] for name in _ONE if name in keywords]
    for name in _LISTS:
        found += keywords.get(name, [])
    for name in _MAPS:
        found += keywords.get(name, {}).values()
    return [each for each in found if isinstance(each, dict) and resources.has(each)]
