"""Avro's schema resolution: values of a writer's schema become values of the reader's, exactly or not at all.

Avro's own rules ignore logical types: days would be read as milliseconds, and 12.50 with a scale of 2 as 1250
with a scale of 0. Here a time is converted to the reader's unit, and values of other meanings are refused.
Numbers stay as they are: the column of a reader's float or double takes an integer that it holds exactly.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, NoReturn, TypeAlias

from headrace.registry.formats.avro.parser import DefaultCheck
from headrace.registry.formats.avro.types import NAMED, NO_DEFAULT, AvroType
from headrace.tables.registry.avro_shapes import branch_of, decimal_of, is_tagged, tag_of, untagged
from headrace.tables.registry.reader import Unreadable

Convert: TypeAlias = Callable[[Any], Any]

_PROMOTIONS: Final = {  # the best first
    "int": ("long", "double", "float"),
    "long": ("double", "float"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
_TIMES: Final = {  # the kind of a time, and the nanoseconds of its unit
    "date": ("date", 86_400_000_000_000),
    "time-millis": ("time", 1_000_000),
    "time-micros": ("time", 1_000),
    "timestamp-millis": ("timestamp", 1_000_000),
    "timestamp-micros": ("timestamp", 1_000),
    "timestamp-nanos": ("timestamp", 1),
    "local-timestamp-millis": ("timestamp", 1_000_000),
    "local-timestamp-micros": ("timestamp", 1_000),
    "local-timestamp-nanos": ("timestamp", 1),
}
_MEANINGS: Final = frozenset({*_TIMES, "decimal", "big-decimal", "uuid", "duration"})
_RECORDS: Final = frozenset({"record", "error"})


class Resolution:
    """The conversions from one schema to another. A conversion of None leaves values as they are."""

    def __init__(self) -> None:
        self._known: dict[tuple[AvroType, AvroType], Convert | None] = {}

    def conversion(self, writer: AvroType, reader: AvroType, path: str = "") -> Convert | None:
        pair = writer, reader
        if pair not in self._known:

            def later(value: Any) -> Any:  # for a record within itself
                convert = self._known[pair]
                return value if convert is None else convert(value)

            self._known[pair] = later
            find = self._from_union if writer.kind == "union" else self._to_reader
            self._known[pair] = find(writer, reader, path)
        return self._known[pair]

    def _from_union(self, writer: AvroType, reader: AvroType, path: str) -> Convert | None:
        if reader.kind == "union" and list(map(tag_of, writer.branches)) == list(
            map(tag_of, reader.branches)
        ):
            pairs = zip(writer.branches, reader.branches, strict=True)
            if all(self.conversion(old, new, path) is None for old, new in pairs):
                return None
        converts = [self._to_reader(branch, reader, path) for branch in writer.branches]

        def from_union(value: Any) -> Any:
            convert = converts[branch_of(writer.branches, value)]
            return untagged(value) if convert is None else convert(untagged(value))

        return from_union

    def _to_reader(self, writer: AvroType, reader: AvroType, path: str) -> Convert | None:
        if reader.kind != "union":
            return self._of_one(writer, reader, path)
        fitting = next((branch for branch in reader.branches if _matches(writer, branch)), None)
        for kind in _PROMOTIONS.get(writer.kind, ()):
            fitting = fitting or next((branch for branch in reader.branches if branch.kind == kind), None)
        if fitting is None:
            return _refusal(writer, reader, path)
        convert = self.conversion(writer, fitting, path)
        if not is_tagged(reader) or fitting.kind == "null":
            return convert
        tag = tag_of(fitting)
        return lambda value: (tag, value if convert is None else convert(value))

    def _of_one(self, writer: AvroType, reader: AvroType, path: str) -> Convert | None:
        if not _matches(writer, reader) and reader.kind not in _PROMOTIONS.get(writer.kind, ()):
            return _refusal(writer, reader, path)
        match writer.kind, reader.kind:
            case (("record" | "error"), _):
                return self._record(writer, reader, path)
            case "array", _:
                item = self.conversion(writer.inner, reader.inner, path)
                return None if item is None else lambda values: [item(value) for value in values]
            case "map", _:
                part = self.conversion(writer.inner, reader.inner, path)
                return None if part is None else lambda values: {key: part(values[key]) for key in values}
            case "enum", _:
                return _symbols(writer, reader, path)
            case ("string", "bytes") | ("bytes", "string"):
                if "decimal" in {writer.props.get("logicalType"), reader.props.get("logicalType")}:
                    return _refusal(writer, reader, path)
                return str.encode if writer.kind == "string" else bytes.decode
        return _meaning(writer, reader, path)

    def _record(self, writer: AvroType, reader: AvroType, path: str) -> Convert | None:
        """Match fields by name, and the others by alias."""
        names = {field.name for field in writer.fields}
        types = {field.name: field.type for field in writer.fields}
        taken = names & {field.name for field in reader.fields}
        fields: list[tuple[str, str, Convert | None]] = []
        defaults: dict[str, Any] = {}
        for field in reader.fields:
            aliases = [alias for alias in field.aliases if alias in names - taken]
            source = field.name if field.name in names else next(iter(aliases), None)
            here = f"{path}.{field.name}".lstrip(".")
            if source is not None:
                fields.append((field.name, source, self.conversion(types[source], field.type, here)))
            elif field.default is NO_DEFAULT:
                return _raising(f"its schema has no field {here}, for which the columns have no default")
            else:
                defaults[field.name] = _default(field.default, field.type)
        if names == {source for name, source, convert in fields if name == source and convert is None}:
            return (lambda value: {**value, **defaults}) if defaults else None

        def record(value: Any) -> Any:
            found = dict(defaults)
            for name, source, convert in fields:
                found[name] = value[source] if convert is None else convert(value[source])
            return found

        return record


def _matches(writer: AvroType, reader: AvroType) -> bool:
    """Return whether a value needs no promotion: the types have the same kind and, if they have one, name."""
    if writer.kind != reader.kind and not {writer.kind, reader.kind} <= _RECORDS:
        return False
    if writer.kind not in NAMED:
        return True
    assert writer.name is not None
    assert reader.name is not None
    same = writer.name.simple == reader.name.simple or writer.name in reader.aliases
    return same and writer.size == reader.size


def _symbols(writer: AvroType, reader: AvroType, path: str) -> Convert | None:
    known, default = frozenset(reader.symbols), reader.default
    if known.issuperset(writer.symbols):
        return None

    def symbol(value: str) -> str:
        if value in known:
            return value
        if default is None:
            raise Unreadable(f"{path or 'it'} is {value}, which the schema of the columns does not have")
        return default  # as the reader's schema says

    return symbol


def _meaning(writer: AvroType, reader: AvroType, path: str) -> Convert | None:
    """Return the conversion between logical types; a value without one is what the other type says."""
    old, new = (each.props.get("logicalType") for each in (writer, reader))
    if old == new == "decimal":
        convert = decimal_of(writer)
        return convert if _scale(writer) != _scale(reader) else None
    if old in _TIMES and new in _TIMES and _TIMES[old][0] == _TIMES[new][0]:
        return _unit(Fraction(_TIMES[old][1], _TIMES[new][1]), old, new, path)
    changed = old != new and old in _MEANINGS and new in _MEANINGS
    return _refusal(writer, reader, path) if changed else None


def _scale(decimal: AvroType) -> Any:
    return decimal.props.get("scale", 0)


def _unit(ratio: Fraction, old: str, new: str, path: str) -> Convert | None:
    if ratio >= 1:
        factor = int(ratio)
        return None if factor == 1 else lambda value: value * factor
    divisor = int(1 / ratio)

    def divided(value: int) -> int:
        found, left = divmod(value, divisor)
        if left:
            raise Unreadable(f"{path or 'it'} is {value} ({old}), which {new} cannot hold exactly")
        return found

    return divided


def _refusal(writer: AvroType, reader: AvroType, path: str) -> Convert:
    old, new = _shown(writer), _shown(reader)
    return _raising(f"{path or 'it'} is {old} in its schema, and {new} in that of the columns")


def _raising(reason: str) -> Convert:
    def refuse(_value: Any) -> NoReturn:
        raise Unreadable(reason)

    return refuse


def _shown(type_: AvroType) -> str:
    if type_.kind == "union":
        return f"a union of {', '.join(map(_shown, type_.branches))}"
    named = f"{type_.kind} {type_.name.full}" if type_.name else type_.kind
    return f"{named} ({type_.props['logicalType']})" if "logicalType" in type_.props else named


def _default(value: Any, of: AvroType) -> Any:
    """Return a field's default, which is in Avro's JSON encoding, as a value."""
    match of.kind:
        case "bytes" | "fixed":
            return value.encode("latin-1")
        case "float" | "double":
            return float(value)
        case "array":
            return [_default(each, of.inner) for each in value]
        case "map":
            return {key: _default(each, of.inner) for key, each in value.items()}
        case "record" | "error":
            return {
                field.name: _default(value.get(field.name, field.default), field.type) for field in of.fields
            }
        case "union":
            branch = next(each for each in of.branches if DefaultCheck().fits(value, each))
            found = _default(value, branch)
            return (tag_of(branch), found) if is_tagged(of) and branch.kind != "null" else found
    return value
