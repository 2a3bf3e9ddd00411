"""How many schemas a JSON schema asks about one value, with every $ref replaced by what it leads to.

A schema of a few lines may refer to another twice, and that one to a third twice: n of these are 2^n schemas.
"""

from typing import Any, Final

from headrace.registry.formats.json_keywords import known
from headrace.registry.formats.json_resources import Resources
from headrace.registry.formats.limits import MAX_EXPANSION

_ONE: Final = ("not", "if", "then", "else")
_LISTS: Final = ("allOf", "anyOf", "oneOf")
_MAPS: Final = ("dependentSchemas", "dependencies")
_REFS: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def expansion(resources: Resources) -> int:
    """The most schemas that any one value is asked about, up to MAX_EXPANSION + 1.

    Only what applies to the same value counts, not what applies to its properties and items.
    """
    return _Expansion(resources).largest()


class _Expansion:
    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._sizes: dict[int, int] = {}

    def largest(self) -> int:
        """Measure every schema once, after those that it asks about; one that leads back counts as one."""
        waiting = [(node, False) for node in self._resources.nodes]
        while waiting:
            node, are_inner_measured = waiting.pop()
            if are_inner_measured:
                size = 1 + sum(self._sizes[id(each)] for each in self._inner(node))
                self._sizes[id(node)] = min(size, MAX_EXPANSION + 1)
            elif id(node) not in self._sizes:
                self._sizes[id(node)] = 1
                waiting.append((node, True))
                waiting += [(each, False) for each in self._inner(node) if id(each) not in self._sizes]
        return max(self._sizes.values(), default=1)

    def _inner(self, node: dict[str, Any]) -> list[dict[str, Any]]:
        place = self._resources.place(node)
        keywords = known(node, place.draft)
        refs = (keywords.get(name) for name in _REFS)
        found: list[Any] = [self._resources.target(ref, place) for ref in refs if isinstance(ref, str)]
        found += [keywords[name] for name in _ONE if name in keywords]
        for name in _LISTS:
            found += keywords.get(name, [])
        for name in _MAPS:
            found += keywords.get(name, {}).values()
        return [each for each in found if isinstance(each, dict) and self._resources.has(each)]
