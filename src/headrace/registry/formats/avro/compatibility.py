"""Whether one Avro schema reads data of another: the specification's schema resolution, without data.

The verdicts and their names are those of Java's SchemaCompatibility, which other registries use. Two named
types match if their names without namespaces are equal, or if the writer's full name is an alias of the
reader's.
"""

from headrace.registry.formats.avro.types import NO_DEFAULT, AvroType
from headrace.registry.formats.differences import Difference, Differences, Pairs, join
from headrace.registry.formats.limits import MAX_MESSAGES

_PROMOTIONS = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "bytes": {"string"},
    "string": {"bytes"},
}
_RECORDS = frozenset({"record", "error"})


def differences(reader: AvroType, writer: AvroType) -> Differences:
    """Return what keeps `reader` from reading all data of `writer`."""
    return _Resolution().pairs.all(reader, writer)


class _Resolution:
    def __init__(self) -> None:
        self.pairs: Pairs[AvroType] = Pairs(self._rule)

    def _rule(self, reader: AvroType, writer: AvroType, path: str) -> Differences:
        self.pairs.count_parts(sum(len(each.symbols) + len(each.fields) for each in (reader, writer)))
        if writer.kind == "union":
            return self._from_union(reader, writer, path)
        if reader.kind == "union":
            # One branch of the reader has to read the writer's type.
            fits = any(not self.pairs.compare(branch, writer, path) for branch in reader.branches)
            return [] if fits else [_no_branch(writer, path)]
        if reader.kind in _RECORDS and writer.kind in _RECORDS:
            return _names(reader, writer, path) + self._fields(reader, writer, path)
        if reader.kind == writer.kind:
            return self._same_kind(reader, writer, path)
        if writer.kind in _PROMOTIONS.get(reader.kind, ()):
            return []
        kinds = f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
        sentence = f"The type at {path!r} in the {{reader}} schema does not match the {{writer}} schema"
        return [Difference("TYPE_MISMATCH", path, sentence, kinds)]

    def _same_kind(self, reader: AvroType, writer: AvroType, path: str) -> Differences:
        match reader.kind:
            case "array":
                return self.pairs.compare(reader.inner, writer.inner, join(path, "items"))
            case "map":
                return self.pairs.compare(reader.inner, writer.inner, join(path, "values"))
            case "enum":
                return _names(reader, writer, path) + _symbols(reader, writer, path)
            case "fixed":
                return _names(reader, writer, path) + _sizes(reader, writer, path)
        return []

    def _from_union(self, reader: AvroType, writer: AvroType, path: str) -> Differences:
        """Compare every branch of the writer: each of them may have been written."""
        found: Differences = []
        for number, branch in enumerate(writer.branches):
            unreadable = self.pairs.compare(reader, branch, join(path, number))
            if unreadable and reader.kind == "union":
                found.append(_no_branch(branch, join(path, number)))
            else:
                found += unreadable
        return found

    def _fields(self, reader: AvroType, writer: AvroType, path: str) -> Differences:
        """Match fields by name, and the remaining ones by alias."""
        left = {field.name: field for field in writer.fields}
        own = {field.name: left.pop(field.name) for field in reader.fields if field.name in left}
        found: Differences = []
        for number, field in enumerate(reader.fields):
            here = join(path, "fields", number)
            aliased = [left.pop(alias) for alias in field.aliases if field.name not in own and alias in left]
            matches = [own[field.name]] if field.name in own else aliased
            field_at = f"The field {field.name!r} at"
            if len(matches) > 1:
                sentence = f"{field_at} {here!r} in the {{reader}} schema matches several fields"
                sentence += " of the {writer} schema"
                found.append(Difference("NAME_MISMATCH", here, sentence, field.name))
            elif matches:
                found += self.pairs.compare(field.type, matches[0].type, join(here, "type"))
            elif field.default is NO_DEFAULT:
                sentence = f"{field_at} path {here!r} in the {{reader}} schema has no default value"
                sentence += " and is missing in the {writer} schema"
                found.append(Difference("READER_FIELD_MISSING_DEFAULT_VALUE", here, sentence, field.name))
        return found


def _names(reader: AvroType, writer: AvroType, path: str) -> Differences:
    assert reader.name is not None
    assert writer.name is not None
    if reader.name.simple == writer.name.simple or writer.name in reader.aliases:
        return []
    here = join(path, "name")
    sentence = f"The name of the schema has changed (path {here!r})"
    return [Difference("NAME_MISMATCH", here, sentence, f"expected: {writer.name.full}")]


def _symbols(reader: AvroType, writer: AvroType, path: str) -> Differences:
    missing = sorted(set(writer.symbols) - set(reader.symbols))[:MAX_MESSAGES]
    if not missing or reader.default is not None:
        return []
    here, listed = join(path, "symbols"), f"[{', '.join(missing)}]"
    sentence = f"The {{reader}} schema lacks the enum symbols {listed!r} of the {{writer}} schema at {here!r}"
    return [Difference("MISSING_ENUM_SYMBOLS", here, sentence, listed)]


def _sizes(reader: AvroType, writer: AvroType, path: str) -> Differences:
    if reader.size == writer.size:
        return []
    here = join(path, "size")
    sentence = (
        f"The size of the fixed at {here!r} in the {{reader}} schema does not match the {{writer}} schema"
    )
    return [
        Difference("FIXED_SIZE_MISMATCH", here, sentence, f"expected: {writer.size}, found: {reader.size}")
    ]


def _no_branch(writer: AvroType, path: str) -> Difference:
    sentence = f"The {{reader}} schema lacks a type in the union at {path!r} that the {{writer}} schema has"
    return Difference(
        "MISSING_UNION_BRANCH", path, sentence, f"reader union lacking writer type: {writer.kind.upper()}"
    )
