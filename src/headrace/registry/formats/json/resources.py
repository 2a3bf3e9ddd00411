"""The targets of $ref: within a document, by $id and anchors, and in documents that are referenced by name.

Nothing is fetched from the network: a $ref leads to the schema itself or to one of its references.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urljoin

import jsonschema_rs

from headrace.registry.formats.json.keywords import REFS, Draft, Node, draft_of, known, within
from headrace.registry.formats.limits import MAX_EXPANSION
from headrace.registry.formats.schema import InvalidSchema

_MAX_HOPS = 100  # from $ref to $ref
_META_SCHEMAS = ("http://json-schema.org/", "https://json-schema.org/")


@dataclass(frozen=True, slots=True)
class ResolutionScope:
    """The base URI of relative references in a schema, and the draft that defines its keywords."""

    base: str
    draft: Draft


class Resources:
    """Documents, each valid in its draft."""

    def __init__(self) -> None:
        self._scopes: dict[int, ResolutionScope] = {}
        self._by_uri: dict[str, Node] = {}
        self._documents: list[Node] = []  # kept alive: their parts are keyed by identity
        self._refs: list[tuple[str, ResolutionScope]] = []
        self.nodes: list[dict[str, Any]] = []  # every schema in the documents that is an object

    def add(self, name: str, root: Any) -> None:
        """Add a document under the name of its reference, or "" for the schema itself."""
        scope = ResolutionScope(name, draft_of(root))
        self._documents.append(root)
        self._by_uri[name] = root
        _validate(root, scope.draft)
        self._walk(root, scope)

    def check_references(self) -> None:
        """Follow every $ref; `InvalidSchema` if one has no target, or leads only back to itself."""
        while self._refs:
            self._check_reference(*self._refs.pop())

    def _check_reference(self, ref: str, scope: ResolutionScope) -> None:
        step: Any = ref
        for _ in range(_MAX_HOPS):
            node = self.target(step, scope)
            step = node.get("$ref") if isinstance(node, dict) else None
            if not isinstance(node, dict) or not isinstance(step, str):
                return
            scope = self.scope(node)
        raise InvalidSchema(f"The $ref {ref!r} leads back to itself.")

    def has(self, node: dict[str, Any]) -> bool:
        return id(node) in self._scopes

    def scope(self, node: dict[str, Any]) -> ResolutionScope:
        return self._scopes[id(node)]

    def expansion(self) -> int:
        """Return how many schemas one value is validated by at most, with every $ref expanded.

        A short schema may refer to another twice, and that one to a third twice: n of these expand to 2^n
        schemas. Counting stops at MAX_EXPANSION + 1; schemas of properties and items are not counted.
        """
        counts: dict[int, int] = {}
        waiting = [(node, False) for node in self.nodes]
        while waiting:
            node, are_inner_counted = waiting.pop()
            if are_inner_counted:
                count = 1 + sum(counts[id(each)] for each in self._applied(node))
                counts[id(node)] = min(count, MAX_EXPANSION + 1)
            elif id(node) not in counts:
                counts[id(node)] = 1  # a schema that refers back to itself counts as one
                waiting.append((node, True))
                waiting += [(each, False) for each in self._applied(node) if id(each) not in counts]
        return max(counts.values(), default=1)

    def _applied(self, node: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the schemas by which the same value is validated, too."""
        scope = self.scope(node)
        keywords = known(node, scope.draft)
        refs = (keywords.get(name) for name in REFS)
        found: list[Any] = [self.target(ref, scope) for ref in refs if isinstance(ref, str)]
        found += [keywords[name] for name in ("not", "if", "then", "else") if name in keywords]
        for name in ("allOf", "anyOf", "oneOf"):
            found += keywords.get(name, [])
        for name in ("dependentSchemas", "dependencies"):
            found += keywords.get(name, {}).values()
        return [each for each in found if isinstance(each, dict) and self.has(each)]

    def _walk(self, root: Node, scope: ResolutionScope) -> None:
        waiting = [(root, scope)]
        while waiting:
            node, outer = waiting.pop()
            if not isinstance(node, dict) or id(node) in self._scopes:
                continue
            inner = self._enter(node, outer)
            self._scopes[id(node)] = inner
            self.nodes.append(node)
            keywords = known(node, inner.draft)
            self._refs += [(ref, inner) for key in REFS if isinstance(ref := keywords.get(key), str)]
            waiting += [(part, inner) for part in within(node, inner.draft)]

    def _enter(self, node: dict[str, Any], outer: ResolutionScope) -> ResolutionScope:
        """Return the scope within `node`, which an $id changes; register the node's $id and anchors."""
        keywords, scope = known(node, outer.draft), outer
        own = keywords.get("$id", keywords.get("id"))
        if isinstance(own, str) and own and not own.startswith("#"):
            scope = ResolutionScope(_join_uri(outer.base, own).rstrip("#"), outer.draft)
            self._by_uri.setdefault(scope.base, node)
        anchors = [keywords.get("$anchor"), keywords.get("$dynamicAnchor")]
        if isinstance(own, str) and own.startswith("#"):  # until draft 7
            anchors.append(own[1:])
        for anchor in anchors:
            if isinstance(anchor, str) and anchor:
                self._by_uri.setdefault(f"{scope.base}#{anchor}", node)
        return scope

    def target(self, ref: str, scope: ResolutionScope) -> Node:
        """Return the schema that a $ref within `scope` leads to; `InvalidSchema` if there is none."""
        document, _, fragment = ref.partition("#")
        candidates = [document, _join_uri(scope.base, document)] if document else [scope.base]
        base = next((uri for uri in candidates if uri in self._by_uri), None)
        if base is None:
            if ref.startswith(_META_SCHEMAS):
                return True
            raise InvalidSchema(f"The $ref {ref!r} has no target in the schema or its references.")
        root = self._by_uri[base]
        inner = self._scopes[id(root)] if isinstance(root, dict) else scope
        if not fragment:
            return root
        if not fragment.startswith("/"):
            named = self._by_uri.get(f"{inner.base}#{unquote(fragment)}")
            if named is None:
                raise InvalidSchema(f"The $ref {ref!r} has no target: there is no such anchor.")
            return named
        return self._at_pointer(ref, root, fragment, inner)

    def _at_pointer(self, ref: str, root: Node, pointer: str, scope: ResolutionScope) -> Node:
        node: Any = root
        for step in unquote(pointer)[1:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            match node:
                case dict() if key in node:
                    node = node[key]
                case list() if key.isdecimal() and len(key) < 8 and int(key) < len(node):
                    node = node[int(key)]
                case _:
                    raise InvalidSchema(f"The $ref {ref!r} has no target: there is no {key!r}.")
        if isinstance(node, dict) and id(node) not in self._scopes:
            # No keyword has a schema here, so the walk over the document has left it out.
            _validate(node, scope.draft)
            self._walk(node, scope)
        if not isinstance(node, dict | bool):
            raise InvalidSchema(f"The $ref {ref!r} leads to a value that is not a schema.")
        return node


def _validate(node: Any, draft: Draft) -> None:
    """Validate by the meta-schema of the draft. Another one in "$schema" is not fetched."""
    if not isinstance(node, dict | bool):
        raise InvalidSchema("A JSON schema is an object, true or false.")
    try:
        jsonschema_rs.meta.validate({**node, "$schema": draft.uri} if isinstance(node, dict) else node)
    except jsonschema_rs.ValidationError as error:
        where = "/".join(map(str, ["#", *error.instance_path]))
        raise InvalidSchema(f"The schema is not valid at {where}: {error.message[:300]}.") from error


def _join_uri(base: str, uri: str) -> str:
    try:
        return urljoin(base, uri)
    except ValueError as error:  # for example http://[
        raise InvalidSchema(f"This is not a URI: {uri[:100]!r}.") from error
