"""Avro schemas as JSON, with the order of keys of Java's library."""

from collections.abc import Iterable, Mapping
from typing import Any

from headrace.registry.formats.avro.types import NAMED, NO_DEFAULT, PRIMITIVES, AvroType, Field, Name

_LOGICAL = ("logicalType", "precision", "scale")


class Writer:
    """Writes one schema. A named type is written out at its first use and by its name afterwards.

    The types in `known` are written by name everywhere. A normalized schema has no empty docs, and everything
    that has no order of its own is sorted.
    """

    def __init__(self, known: Iterable[str] = (), *, normalize: bool = False) -> None:
        self._known = set(known)
        self._normalize = normalize

    def type(self, type_: AvroType, namespace: str = "") -> Any:
        """Return the type as JSON, for a place within `namespace`."""
        if type_.kind == "union":
            return [self.type(branch, namespace) for branch in type_.branches]
        if type_.kind in {"array", "map"}:
            holds = "items" if type_.kind == "array" else "values"
            return {"type": type_.kind, holds: self.type(type_.inner, namespace), **self._props(type_.props)}
        if type_.name is None:
            return {"type": type_.kind, **self._props(type_.props)} if type_.props else type_.kind
        if type_.name.full in self._known:
            return _within(type_.name, namespace)
        self._known.add(type_.name.full)
        return self._definition(type_, type_.name, namespace)

    def _definition(self, type_: AvroType, name: Name, namespace: str) -> dict[str, Any]:
        written: dict[str, Any] = {"type": type_.kind, "name": name.simple}
        if name.namespace != namespace:
            written["namespace"] = name.namespace
        if self._has_doc(type_.doc):
            written["doc"] = type_.doc
        match type_.kind:
            case "enum":
                written["symbols"] = list(type_.symbols)
                if type_.default is not None:
                    written["default"] = type_.default
            case "fixed":
                written["size"] = type_.size
            case _:
                written["fields"] = [self._field(field, name.namespace) for field in type_.fields]
        written |= self._props(type_.props)
        if type_.aliases:
            written["aliases"] = self._sorted(_within(alias, name.namespace) for alias in type_.aliases)
        return written

    def _field(self, field: Field, namespace: str) -> dict[str, Any]:
        written = {"name": field.name, "type": self.type(field.type, namespace)}
        if self._has_doc(field.doc):
            written["doc"] = field.doc
        if field.default is not NO_DEFAULT:
            written["default"] = self._value(field.default)
        if field.order != "ascending":
            written["order"] = field.order
        if field.aliases:
            written["aliases"] = self._sorted(field.aliases)
        return written | self._props(field.props)

    def _has_doc(self, doc: str | None) -> bool:
        return bool(doc) if self._normalize else doc is not None

    def _sorted(self, names: Iterable[str]) -> list[str]:
        return sorted(names) if self._normalize else list(names)

    def _props(self, props: Mapping[str, Any]) -> dict[str, Any]:
        if not self._normalize:
            return dict(props)
        first = [key for key in _LOGICAL if key in props]
        return {key: self._value(props[key]) for key in (*first, *sorted(props.keys() - set(first)))}

    def _value(self, value: Any) -> Any:
        """Return a default or a property; the order of its keys has no meaning."""
        match value:
            case dict() if self._normalize:
                return {key: self._value(value[key]) for key in sorted(value)}
            case list():
                return [self._value(item) for item in value]
        return value


def _within(name: Name, namespace: str) -> str:
    """Return the name for use in a namespace: short, unless that would be another type."""
    taken = name.simple in NAMED | PRIMITIVES | {"array", "map"}
    return name.simple if name.namespace == namespace and not taken else name.full
