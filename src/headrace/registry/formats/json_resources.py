"""Where $ref leads: within a document, by $id and anchors, and to documents that are referenced by name.

Nothing is ever fetched: what is not in the schema or among its references does not exist.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urljoin

import jsonschema_rs

from headrace.registry.formats.json_keywords import Draft, Node, draft_of, known, within
from headrace.registry.formats.schema import InvalidSchema

_MOST_HOPS = 100  # from $ref to $ref, before there is anything else
_OWN = ("http://json-schema.org/", "https://json-schema.org/")


@dataclass(frozen=True, slots=True)
class ResolutionScope:
    """What a relative reference is relative to, and what keywords mean there."""

    base: str
    draft: Draft


class Resources:
    """Documents, each valid in its draft, with every $ref in them known to lead somewhere."""

    def __init__(self) -> None:
        self._places: dict[int, ResolutionScope] = {}
        self._by_uri: dict[str, Node] = {}
        self._documents: list[Node] = []  # kept: what is known of their parts is known by identity
        self._refs: list[tuple[str, ResolutionScope]] = []
        self.nodes: list[dict[str, Any]] = []  # every schema in them that is an object

    def add(self, name: str, root: Any) -> None:
        """Take a document in under a name; the schema itself has none."""
        place = ResolutionScope(name, draft_of(root))
        self._documents.append(root)
        self._by_uri[name] = root
        _check(root, place.draft)
        self._walk(root, place)

    def check_references(self) -> None:
        """Follow every $ref once; `InvalidSchema` if one leads nowhere, or in a circle of nothing else."""
        while self._refs:
            self._check_reference(*self._refs.pop())

    def _check_reference(self, ref: str, place: ResolutionScope) -> None:
        step: Any = ref
        for _ in range(_MOST_HOPS):
            node = self._follow(step, place)
            step = node.get("$ref") if isinstance(node, dict) else None
            if not isinstance(node, dict) or not isinstance(step, str):
                return
            place = self.place(node)
        raise InvalidSchema(f"The $ref {ref!r} leads back to itself.")

    def has(self, node: dict[str, Any]) -> bool:
        return id(node) in self._places

    def place(self, node: dict[str, Any]) -> ResolutionScope:
        return self._places[id(node)]

    def target(self, ref: str, place: ResolutionScope) -> Node:
        """The schema that `ref` stands for, somewhere at `place`."""
        return self._follow(ref, place)

    def _walk(self, root: Node, place: ResolutionScope) -> None:
        waiting = [(root, place)]
        while waiting:
            node, around = waiting.pop()
            if not isinstance(node, dict) or id(node) in self._places:
                continue
            here = self._enter(node, around)
            self._places[id(node)] = here
            self.nodes.append(node)
            keywords = known(node, here.draft)
            refs = (keywords.get(key) for key in ("$ref", "$dynamicRef", "$recursiveRef"))
            self._refs += [(ref, here) for ref in refs if isinstance(ref, str)]
            waiting += [(part, here) for part in within(node, here.draft)]

    def _enter(self, node: dict[str, Any], around: ResolutionScope) -> ResolutionScope:
        """The place within `node`: an $id moves it, and an anchor gives it a name."""
        keywords, place = known(node, around.draft), around
        own = keywords.get("$id", keywords.get("id"))
        if isinstance(own, str) and own and not own.startswith("#"):
            place = ResolutionScope(_joined(around.base, own).rstrip("#"), around.draft)
            self._by_uri.setdefault(place.base, node)
        anchors = [keywords.get("$anchor"), keywords.get("$dynamicAnchor")]
        if isinstance(own, str) and own.startswith("#"):  # until draft 7
            anchors.append(own[1:])
        for anchor in anchors:
            if isinstance(anchor, str) and anchor:
                self._by_uri.setdefault(f"{place.base}#{anchor}", node)
        return place

    def _follow(self, ref: str, place: ResolutionScope) -> Node:
        document, _, fragment = ref.partition("#")
        base = self._document(document, place)
        if base is None:
            if ref.startswith(_OWN):  # a schema of schemas: known, and the same to everybody
                return True
            raise InvalidSchema(
                f"The $ref {ref!r} leads nowhere: it is neither in the schema nor referenced."
            )
        root = self._by_uri[base]
        inside = self._places[id(root)] if isinstance(root, dict) else place
        if not fragment:
            return root
        if not fragment.startswith("/"):
            named = self._by_uri.get(f"{inside.base}#{unquote(fragment)}")
            if named is None:
                raise InvalidSchema(f"The $ref {ref!r} leads nowhere: there is no such anchor.")
            return named
        return self._pointed(ref, root, fragment, inside)

    def _document(self, document: str, place: ResolutionScope) -> str | None:
        candidates = [document, _joined(place.base, document)] if document else [place.base]
        return next((uri for uri in candidates if uri in self._by_uri), None)

    def _pointed(self, ref: str, root: Node, pointer: str, inside: ResolutionScope) -> Node:
        node: Any = root
        for step in unquote(pointer)[1:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            match node:
                case dict() if key in node:
                    node = node[key]
                case list() if key.isdecimal() and len(key) < 8 and int(key) < len(node):
                    node = node[int(key)]
                case _:
                    raise InvalidSchema(f"The $ref {ref!r} leads nowhere: {key!r} is not there.")
        if (
            isinstance(node, dict) and id(node) not in self._places
        ):  # in no place where schemas are: nobody looked yet
            _check(node, inside.draft)
            self._walk(node, inside)
        if not isinstance(node, dict | bool):
            raise InvalidSchema(f"The $ref {ref!r} leads to something that is no schema.")
        return node


def _check(node: Any, draft: Draft) -> None:
    """By the draft's schema of schemas; what else "$schema" may name is not looked for on the network."""
    if not isinstance(node, dict | bool):
        raise InvalidSchema("A JSON schema is an object, true or false.")
    try:
        jsonschema_rs.meta.validate({**node, "$schema": draft.uri} if isinstance(node, dict) else node)
    except jsonschema_rs.ValidationError as error:
        where = "/".join(map(str, ["#", *error.instance_path]))
        raise InvalidSchema(f"The schema is not valid at {where}: {error.message[:300]}.") from error


def _joined(base: str, uri: str) -> str:
    try:
        return urljoin(base, uri)
    except ValueError as error:  # http://[ and the like
        raise InvalidSchema(f"This is not a URI: {uri[:100]!r}.") from error
