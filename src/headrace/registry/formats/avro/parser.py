"""A parser of Avro schemas that is as strict as the specification."""

import re
from collections.abc import Iterator
from typing import Any

from headrace.registry.formats.avro.types import NAMED, NO_DEFAULT, PRIMITIVES, AvroType, Field, Name
from headrace.registry.formats.json.text import dump
from headrace.registry.formats.schema import InvalidSchema

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OF_TYPES = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
    | {"__fastavro_parsed", "__named_schemas"}  # added by fastavro
)
_OF_FIELDS = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_ORDERS = ("ascending", "descending", "ignore")
_MAX_FIXED = 2**31 - 1
_RANGES = {"int": 2**31, "long": 2**63}


class Parser:
    """Parses schemas one after the other; each may use the names of those before it."""

    def __init__(self) -> None:
        self.names: dict[str, AvroType] = {}

    def type(self, node: Any, namespace: str = "") -> AvroType:
        """Return the type that `node` describes within a namespace; `InvalidSchema` if it is malformed."""
        match node:
            case str():
                return self._named(node, namespace)
            case list():
                return self._union(node, namespace)
            case {"type": str() as kind}:
                return self._described(kind, node, namespace)
        raise InvalidSchema(f"This is not an Avro type: {_shown(node)}.")

    def _named(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self.names.get(full) or self.names.get(name)  # without a namespace, as in Java
        if found is None:
            raise InvalidSchema(f"The type {full!r} is neither defined before its use nor referenced.")
        return found

    def _described(self, kind: str, node: dict[str, Any], namespace: str) -> AvroType:
        props = {key: value for key, value in node.items() if key not in _OF_TYPES}
        if kind in PRIMITIVES:
            return AvroType(kind, props)
        if kind in {"array", "map"}:
            holds = "items" if kind == "array" else "values"
            if holds not in node:
                raise InvalidSchema(f"The {kind} has no {holds!r}: {_shown(node)}.")
            return AvroType(kind, props, branches=(self.type(node[holds], namespace),))
        if kind in NAMED:
            return self._definition(kind, node, namespace, props)
        return self._named(kind, namespace)

    def _union(self, node: list[Any], namespace: str) -> AvroType:
        branches = tuple(self.type(branch, namespace) for branch in node)
        taken = set()
        for branch in branches:
            if branch.kind == "union":
                raise InvalidSchema(f"A union is directly within a union: {_shown(node)}.")
            known_as = branch.name.full if branch.name else branch.kind
            if known_as in taken:
                raise InvalidSchema(f"The union has {known_as!r} twice: {_shown(node)}.")
            taken.add(known_as)
        return AvroType("union", branches=branches)

    def _definition(self, kind: str, node: dict[str, Any], namespace: str, props: dict[str, Any]) -> AvroType:
        name = _name(node, namespace)
        if name.full in self.names:
            raise InvalidSchema(f"The type {name.full!r} is defined twice.")
        aliases = tuple(_qualified(alias, name.namespace) for alias in _aliases(node, name.full))
        defined = AvroType(kind, props, name, _text(node, "doc"), aliases)
        self.names[name.full] = defined
        match kind:
            case "enum":
                _read_enum(defined, node)
            case "fixed":
                size = node.get("size")
                if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _MAX_FIXED:
                    raise InvalidSchema(f"The fixed {name.full!r} has no valid size: {_shown(size)}.")
                defined.size = size
            case _:
                defined.fields = tuple(self._fields(node, name))
                # Defaults are checked when all fields are known: one may be a value of the record itself.
                for field in defined.fields:
                    if field.default is not NO_DEFAULT and not DefaultCheck().fits(field.default, field.type):
                        which = f"The default of {field.name!r} of {name.full!r}"
                        raise InvalidSchema(f"{which} is not of its type: {_shown(field.default)}.")
        return defined

    def _fields(self, node: dict[str, Any], record: Name) -> Iterator[Field]:
        if not isinstance(node.get("fields"), list):
            raise InvalidSchema(f"The record {record.full!r} has no list of fields.")
        taken = set()
        for given in node["fields"]:
            field = self._field(given, record)
            if field.name in taken:
                raise InvalidSchema(f"The record {record.full!r} has two fields {field.name!r}.")
            taken.add(field.name)
            yield field

    def _field(self, node: Any, record: Name) -> Field:
        if not isinstance(node, dict) or not isinstance(node.get("name"), str):
            raise InvalidSchema(f"A field of {record.full!r} has no name: {_shown(node)}.")
        name = _valid(node["name"], "field")
        if "type" not in node:
            raise InvalidSchema(f"The field {name!r} of {record.full!r} has no type.")
        if (order := node.get("order", "ascending")) not in _ORDERS:
            raise InvalidSchema(
                f"The field {name!r} of {record.full!r} has an invalid order: {_shown(order)}."
            )
        return Field(
            name,
            self.type(node["type"], record.namespace),
            _text(node, "doc"),
            node.get("default", NO_DEFAULT),
            order,
            tuple(_valid(alias, "alias") for alias in _aliases(node, name)),
            {key: value for key, value in node.items() if key not in _OF_FIELDS},
        )


class DefaultCheck:
    """Checks whether a default, in Avro's JSON encoding, is a value of its field's type.

    Any branch of a union may match, and fields with defaults may be missing. Every pair of value and record
    is checked once: unions of records in unions would take 2^n checks.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], bool] = {}

    def fits(self, value: Any, of: AvroType) -> bool:
        match of.kind:
            case "array":
                return isinstance(value, list) and all(self.fits(item, of.inner) for item in value)
            case "map":
                return isinstance(value, dict) and all(self.fits(item, of.inner) for item in value.values())
            case "union":
                return any(self.fits(value, branch) for branch in of.branches)
            case "record" | "error":
                return isinstance(value, dict) and self._is_record(value, of)
        return _is_simple(value, of)

    def _is_record(self, value: dict[str, Any], of: AvroType) -> bool:
        """Return whether fields of a record fit. Defaults of missing fields are checked with those fields."""
        key = id(value), id(of)
        if key not in self._known:
            self._known[key] = all(
                self.fits(value[field.name], field.type)
                if field.name in value
                else field.default is not NO_DEFAULT
                for field in of.fields
            )
        return self._known[key]


def _is_simple(value: Any, of: AvroType) -> bool:
    match of.kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            limit = _RANGES[of.kind]
            return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
        case "float" | "double" if isinstance(value, str):
            try:  # NaN and infinities, which JSON has no numbers for
                float(value)
            except ValueError:
                return False
            return True
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "bytes":
            return _is_bytes(value)
        case "fixed":
            return _is_bytes(value) and len(value) == of.size
    return value in of.symbols


def _is_bytes(value: Any) -> bool:
    """Return whether each character is the code of a byte."""
    return isinstance(value, str) and all(ord(character) < 256 for character in value)


def _read_enum(enum: AvroType, node: dict[str, Any]) -> None:
    assert enum.name is not None
    symbols = node.get("symbols")
    if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
        raise InvalidSchema(f"The enum {enum.name.full!r} has no list of symbols.")
    enum.symbols = tuple(_valid(symbol, "symbol") for symbol in symbols)
    if len(set(symbols)) < len(symbols):
        raise InvalidSchema(f"The enum {enum.name.full!r} has a symbol twice.")
    enum.default = _text(node, "default")
    enum.props.pop("default", None)
    if enum.default is not None and enum.default not in symbols:
        raise InvalidSchema(
            f"The default of the enum {enum.name.full!r} is not one of its symbols: {enum.default!r}."
        )


def _name(node: dict[str, Any], namespace: str) -> Name:
    if not isinstance(node.get("name"), str):
        raise InvalidSchema(f"A type has no name: {_shown(node)}.")
    given = _text(node, "namespace")
    name = _qualified(node["name"], namespace if given is None else given)
    if name.full in PRIMITIVES:
        raise InvalidSchema(f"A type cannot have the name {name.full!r} of a primitive type.")
    return name


def _qualified(text: str, namespace: str) -> Name:
    """Return the name that is written in a schema: with a dot it includes its namespace."""
    own, dot, simple = text.rpartition(".")
    name = Name(_valid(simple, "name"), own if dot else namespace)
    for part in name.namespace.split(".") if name.namespace else ():
        _valid(part, "namespace")
    return name


def _aliases(node: dict[str, Any], of: str) -> list[str]:
    aliases = node.get("aliases", [])
    if isinstance(aliases, list) and all(isinstance(alias, str) for alias in aliases):
        return list(dict.fromkeys(aliases))
    raise InvalidSchema(f"The aliases of {of!r} are not a list of names.")


def _valid(name: str, what: str) -> str:
    if _NAME.fullmatch(name):
        return name
    raise InvalidSchema(
        f"This is not a valid {what}: {_shown(name)}. Use letters, digits and _, and no digit first."
    )


def _text(node: dict[str, Any], key: str) -> str | None:
    value = node.get(key)
    if value is None or isinstance(value, str):
        return value
    raise InvalidSchema(f"The {key} of {_shown(node.get('name'))} is not a string.")


def _shown(node: Any) -> str:
    text = dump(node)
    return text if len(text) <= 100 else f"{text[:97]}..."
