"""Compiles the decoder of one message class and version into one flat function.

Adjacent fields of fixed size, and the length that follows them, are read by a single
`unpack_from`; nested arrays become nested loops; instances are created by `__new__` and slot stores.
For MetadataRequest v12 the result starts like this:

    buf = bytes(buf); size = len(buf); i = 0
    room = 524288
    n = buf[i]
    i += 1
    if n > 127: n, i = uvarint_tail(buf, i, n)
    n -= 1
    if n == -1: topics_1 = None
    else:
        if not 0 <= n <= (size - i) // 18: bad_count('topics', n, size - i)
        room -= n
        if room < 0: too_many('topics')
        topics_1 = []
        for _ in range(n):
            topic_id_2, n = unpack_4(buf, i)
            i += 17

A sliced decoder is the same as a generator, which yields every few elements: other requests are served while
a large message is decoded. It also appends all elements that are structs to a list, `structs`. Whoever drops
the message first and then empties this list a little at a time does not free a large message in one step.
"""

from collections.abc import Callable
from contextlib import nullcontext
from struct import Struct as Layout
from struct import unpack_from
from typing import Any, Final

from headrace.protocol import primitives
from headrace.protocol.compiled import structs
from headrace.protocol.compiled.source import FIXED, Source
from headrace.protocol.fields import Field

HELPERS: Final = {
    "new": object.__new__,
    "unpack_from": unpack_from,
    "uvarint_tail": primitives.uvarint_tail,
    "string_tail": primitives.string_tail,
    "skip_tags": primitives.skip_tags,
    "bad_length": primitives.bad_length,
    "bad_count": primitives.bad_count,
    "bad_tag_size": primitives.bad_tag_size,
    "too_many": primitives.too_many,
    "trailing": primitives.trailing,
}


def compile_decoder(
    cls: structs.StructType, version: int, *, flexible: bool, trailing: bool = False, sliced: bool = False
) -> Callable[..., Any]:
    """Return the function that decodes an instance of `cls`; `trailing` allows bytes after it.

    A sliced one is a generator; it takes the number of elements the message may have, and `structs`.
    """
    return _Decoder(version, HELPERS, flexible=flexible, sliced=sliced).compiled(cls, trailing=trailing)


class _Decoder(Source):
    """Generates the code. In it, `i` is the position, `j` the end of a value, `n` a length or count, and
    `room` how many more elements the message may have.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._run: list[tuple[str, str]] = []  # fixed-size values still to be read: (format, variable)
        self._copy = ""

    def compiled(self, cls: structs.StructType, *, trailing: bool) -> Callable[..., Any]:
        # Decoding strings from bytes takes half the time it takes from a memoryview, which outweighs
        # the copy; but records must stay views of the received data.
        view = structs.holds_records(cls, self.version)
        self._copy = ".tobytes()" if view else ""
        self.line(f"buf = {'memoryview' if view else 'bytes'}(buf); size = len(buf); i = 0")
        self.line("yield" if self.sliced else f"room = {primitives.MAX_ELEMENTS}")
        message = self._struct(cls)
        if not trailing:
            self.line("if i != size: trailing(size - i)")
        self.line(f"return {message}")
        signature = "decode(buf, room, structs)" if self.sliced else "decode(buf)"
        return self.compile(signature, f"{cls.__name__}.decode v{self.version}")

    def _struct(self, cls: structs.StructType) -> str:
        """Generate the decoding of `cls`; return the variable that holds the instance."""
        values: dict[str, str] = {}
        tagged: list[Field] = []
        for field in cls.__fields__:
            if not field.exists_in(self.version):
                values[field.name] = self._default(field, cls)
            elif field.tag is not None:
                tagged.append(field)
            else:
                values[field.name] = self._field(field, cls)
        if self.flexible:
            values |= self._tags(tagged, cls)
        self._flush()
        instance = self.fresh("struct")
        self.line(f"{instance} = new({self.interned(cls.__name__, cls, lambda: cls)})")
        for field in cls.__fields__:
            self.line(f"{instance}.{field.name} = {values[field.name]}")
        return instance

    def _default(self, field: Field, cls: structs.StructType) -> str:
        return self.constant(f"default_{field.name}", structs.default_of(field, cls))

    def _field(self, field: Field, cls: structs.StructType) -> str:
        if field.is_array:
            return self._array(field, cls)
        if field.holds_structs:
            return self._nested(field, structs.struct_named(field.item_kind, cls))
        value = self.fresh(field.name)
        if field.kind in FIXED:
            self._run.append((FIXED[field.kind][0], value))
        else:
            nullable = field.nullable_in(self.version)
            compact = field.flexible_in(self.version, self.flexible)
            self._sized(field.name, field.kind, value, nullable=nullable, compact=compact)
        return value

    def _nested(self, field: Field, cls: structs.StructType) -> str:
        if not field.nullable_in(self.version):
            return self._struct(cls)
        value = self.fresh(field.name)
        # KIP-893: a byte says whether a nullable struct is present. Absent is -1, but 0 in a tagged field.
        self._run.append(("b", "n"))
        self._flush()
        with self.block("if n < 0:" if field.tag is None else "if n < 1:"):
            self.line(f"{value} = None")
        with self.block("else:"):
            self.line(f"{value} = {self._struct(cls)}")
        return value

    def _sized(self, name: str, kind: str, value: str, *, nullable: bool, compact: bool) -> None:
        """Read a string, bytes or records: a length and that many bytes."""
        code, tail = ("h", "string_tail") if kind == "string" else ("i", "uvarint_tail")
        self._length(code, compact, tail)
        if nullable:
            self.line(f"if n == {0 if compact else -1}: {value} = None")
        with self.block("else:") if nullable else nullcontext():
            length = "n - 1" if compact else "n"
            self.line(f"j = i + {length}")
            self.line(f"if not i <= j <= size: bad_length({name!r}, {length}, size - i)")
            self.line(f"{value} = {self._slice(kind)}")
            self.line("i = j")

    def _slice(self, kind: str) -> str:
        return {
            "string": f"buf[i:j]{self._copy}.decode()",
            "bytes": f"buf[i:j]{self._copy}",
            "records": "buf[i:j]",
        }[kind]

    def _array(self, field: Field, cls: structs.StructType) -> str:
        value = self.fresh(field.name)
        compact = field.flexible_in(self.version, self.flexible)
        self._length("i", compact, "uvarint_tail")
        if compact:
            self.line("n -= 1")
        nullable = field.nullable_in(self.version)
        if nullable:
            self.line(f"if n == -1: {value} = None")
        with self.block("else:") if nullable else nullcontext():
            if field.item_kind in FIXED:
                code, width = FIXED[field.item_kind]
                self.line(f"j = i + n * {width}")
                self.line(f"if not i <= j <= size: bad_count({field.name!r}, n, size - i)")
                self._take_room(field.name)
                if field.item_kind == "uuid":
                    self.line(f"{value} = [buf[k:k + 16]{self._copy} for k in range(i, j, 16)]")
                else:
                    short = self.interned("short", ("short", code), lambda: primitives.short_unpackers(code))
                    many = f'unpack_from(f">{{n}}{code}", buf, i)'
                    self.line(f"{value} = {short}[n](buf, i) if n < {primitives.SHORT} else {many}")
                self.line("i = j")
            else:
                self._items(field, cls, value, compact=compact)
        return value

    def _items(self, field: Field, cls: structs.StructType, value: str, *, compact: bool) -> None:
        item_cls = structs.struct_named(field.item_kind, cls) if field.holds_structs else None
        least = (
            structs.minimal_size(item_cls, self.version, self.flexible) if item_cls else 1 if compact else 2
        )
        self.line(f"if not 0 <= n <= (size - i) // {least}: bad_count({field.name!r}, n, size - i)")
        self._take_room(field.name)
        self.line(f"{value} = []")
        number = self.fresh("number") if self.sliced else "_"
        with self.block(f"for {number} in range(n):"):
            if self.sliced:
                self.line(f"if not {number} & {primitives.STEP - 1}: yield")
            if item_cls:
                item = self._struct(item_cls)
                if self.sliced:
                    self.line(f"structs.append({item})")
            else:
                item = self.fresh("item")
                self._sized(field.name, field.item_kind, item, nullable=False, compact=compact)
            self.line(f"{value}.append({item})")

    def _tags(self, tagged: list[Field], cls: structs.StructType) -> dict[str, str]:
        """Read the tagged fields at the end of a struct; return the variables of the known ones."""
        self._run.append(("B", "n"))
        self._flush()
        if not tagged:
            self.line("if n: i, room = skip_tags(buf, i, size, n, room)")
            return {}
        values = {field.name: self.fresh(field.name) for field in tagged}
        for field in tagged:
            self.line(f"{values[field.name]} = {self._default(field, cls)}")
        with self.block("if n:"):
            self.line("if n > 127: n, i = uvarint_tail(buf, i, n)")
            self._take_room("tagged fields")
            with self.block("for _ in range(n):"):
                end = self.fresh("end")
                for variable in ("tag", "n"):
                    self.line(f"{variable} = buf[i]; i += 1")
                    self.line(f"if {variable} > 127: {variable}, i = uvarint_tail(buf, i, {variable})")
                self.line(f"{end} = i + n")
                self.line(f"if {end} > size: bad_length(f'tagged field {{tag}}', n, size - i)")
                for field in tagged:
                    with self.block(f"if tag == {field.tag}:"):
                        value = self._field(field, cls)
                        self._flush()
                        self.line(f"{values[field.name]} = {value}")
                        self.line(f"if i != {end}: bad_tag_size({field.name!r})")
                        self.line("continue")
                self.line(f"i = {end}")
        return values

    def _take_room(self, name: str) -> None:
        """Count `n` elements towards the limit of the message."""
        self.line("room -= n")
        self.line(f"if room < 0: too_many({name!r})")

    def _length(self, code: str, compact: bool, tail: str) -> None:
        """Read a length into `n`, together with the fixed-size values before it."""
        self._run.append(("B" if compact else code, "n"))
        self._flush()
        if compact:
            self.line(f"if n > 127: n, i = {tail}(buf, i, n)")

    def _flush(self) -> None:
        if not self._run:
            return
        layout = Layout(">" + "".join(code for code, _ in self._run))
        variables = ", ".join(variable for _, variable in self._run)
        if layout.format == ">B":
            self.line(f"{variables} = buf[i]")
        else:
            unpack = self.interned("unpack", layout.format, lambda: layout.unpack_from)
            self.line(f"{variables}{',' * (len(self._run) == 1)} = {unpack}(buf, i)")
        self.line(f"i += {layout.size}")
        self._run.clear()
