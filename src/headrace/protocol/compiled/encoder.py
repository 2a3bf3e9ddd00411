"""Compiles the encoder of one message class and version into one flat function.

Adjacent fields of fixed size, and the length that follows them, are written by a single `pack`.
The code checks nothing that `pack` and the types themselves refuse; a failure is explained
afterwards (`codec.py`). For the partitions of MetadataResponse v12 it looks like this:

    for item_9 in items:
        items = item_9.replica_nodes
        n = len(items) + 1
        if n < 128: out += pack_10(item_9.error_code, item_9.partition_index, ..., n)
        else: out += pack_11(item_9.error_code, item_9.partition_index, ...) + uvarint(n)
        out += short_12[len(items)](*items) if n < 16 else pack(f">{len(items)}i", *items)

A sliced encoder is the same as a generator, which yields every few elements, and appends those that are
structs to the list `structs`, as a sliced decoder does.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from struct import Struct as Layout
from struct import pack
from typing import Any, Final

from headrace.protocol import primitives
from headrace.protocol.compiled.source import FIXED, Source
from headrace.protocol.compiled.structs import StructType, default_of, holds_records, struct_named
from headrace.protocol.fields import Field

HELPERS: Final = {"pack": pack, "uvarint": primitives.uvarint, "string_uvarint": primitives.string_uvarint}


def compile_encoder(
    cls: StructType, version: int, *, flexible: bool, sliced: bool = False
) -> Callable[..., Any]:
    """Return the function that encodes an instance of `cls` into buffers; a sliced one takes `structs`."""
    return _Encoder(version, HELPERS, flexible=flexible, sliced=sliced).compiled(cls)


class _Encoder(Source):
    """Generates the code. In it, `out` is the result, `n` a length, and `data` or `items` its content."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._out = "out"
        self._run: list[tuple[str, str]] = []  # fixed-size values still to be written: (format, expression)

    def compiled(self, cls: StructType) -> Callable[..., Any]:
        records = holds_records(cls, self.version)
        if self.sliced:
            self.line("yield")
        self.line("out = bytearray(); buffers = []" if records else "out = bytearray()")
        self._struct(cls, "message")
        self._flush()
        if records:
            self.line("if out: buffers.append(out)")
        self.line("return buffers" if records else "return [out]")
        signature = "encode(message, structs)" if self.sliced else "encode(message)"
        return self.compile(signature, f"{cls.__name__}.encode v{self.version}")

    def _struct(self, cls: StructType, value: str) -> None:
        present = [field for field in cls.__fields__ if field.exists_in(self.version)]
        for field in present:
            if field.tag is None:
                self._field(field, cls, f"{value}.{field.name}")
        if self.flexible:
            tagged = [field for field in present if field.tag is not None]
            self._tags(sorted(tagged, key=lambda field: field.tag or 0), cls, value)

    def _field(self, field: Field, cls: StructType, value: str) -> None:
        if field.is_array:
            self._array(field, cls, value)
        elif field.holds_structs:
            self._nested(field, struct_named(field.item_kind, cls), value)
        elif field.kind in FIXED:
            self._fixed(field.kind, value)
        else:
            compact = field.flexible_in(self.version, self.flexible)
            self._sized(field.kind, value, nullable=field.nullable_in(self.version), compact=compact)

    def _fixed(self, kind: str, value: str) -> None:
        if kind == "uuid":  # pack would truncate or pad it silently
            self.line(f"if len({value}) != 16: raise ValueError('a uuid has 16 bytes')")
        self._run.append((FIXED[kind][0], value))

    def _nested(self, field: Field, cls: StructType, value: str) -> None:
        nested = self.fresh(field.name)
        self.line(f"{nested} = {value}")
        if not field.nullable_in(self.version):
            self._struct(cls, nested)
            return
        self._flush()
        absent = b"\xff" if field.tag is None else b"\0"  # KIP-893: a byte says whether it is there
        with self.block(f"if {nested} is None:"):
            self.line(f"{self._out} += {absent!r}")
        with self.block("else:"):
            self._run.append(("b", "1"))
            self._struct(cls, nested)
            self._flush()

    def _sized(self, kind: str, value: str, *, nullable: bool, compact: bool) -> None:
        """Write a string, bytes or records: a length and that many bytes."""
        self.line(f"data = {value}")
        plus = " + 1" if compact else ""
        if nullable:
            self.line(f"if data is None: data = b''; n = {0 if compact else -1}")
        with self.block("else:") if nullable else nullcontext():
            if kind == "string":
                self.line("data = data.encode()")
            self.line(f"n = len(data){plus}")
        if kind == "string":
            self._length("h", "string_uvarint" if compact else None)
        else:
            self._length("i", "uvarint" if compact else None)
        if kind == "records":
            self.line("if data: buffers.append(out); buffers.append(data); out = bytearray()")
        else:
            self.line(f"{self._out} += data")

    def _array(self, field: Field, cls: StructType, value: str) -> None:
        compact = field.flexible_in(self.version, self.flexible)
        self.line(f"items = {value}")
        if field.nullable_in(self.version):
            self.line(f"if items is None: items = (); n = {0 if compact else -1}")
            self.line(f"else: n = len(items){' + 1' if compact else ''}")
        else:
            self.line(f"n = len(items){' + 1' if compact else ''}")
        self._length("i", "uvarint" if compact else None)
        if field.item_kind in FIXED and field.item_kind != "uuid":
            code = FIXED[field.item_kind][0]
            short = self.interned("short", ("short", code), lambda: primitives.short_packers(code))
            many = f'pack(f">{{len(items)}}{code}", *items)'
            self.line(f"{self._out} += {short}[len(items)](*items) if n < {primitives.SHORT} else {many}")
        else:
            self._items(field, cls, compact=compact)

    def _items(self, field: Field, cls: StructType, *, compact: bool) -> None:
        item, number = self.fresh("item"), self.fresh("number")
        if self.sliced:
            self.line(f"{number} = 0")
        with self.block(f"for {item} in items:"):
            if self.sliced:
                self.line(f"if not {number} & {primitives.STEP - 1}: yield")
                self.line(f"{number} += 1")
            if field.holds_structs:
                if self.sliced:
                    self.line(f"structs.append({item})")
                self._struct(struct_named(field.item_kind, cls), item)
            elif field.item_kind in FIXED:
                self._fixed(field.item_kind, item)
            else:
                self._sized(field.item_kind, item, nullable=False, compact=compact)
            self._flush()

    def _tags(self, tagged: list[Field], cls: StructType, value: str) -> None:
        """Write the tagged fields at the end of a struct: those that differ from their default."""
        quiet = {field.name: self._is_default(field, cls, f"{value}.{field.name}") for field in tagged}
        if tagged:
            waiting = self._run.copy()
            with self.block(f"if not ({' and '.join(quiet.values())}):"):
                self._flush()
                count, tags = self.fresh("count"), self.fresh("tags")
                self.line(f"{count} = 0; {tags} = bytearray()")
                for field in tagged:
                    with self.block(f"if not {quiet[field.name]}:"):
                        content = self.fresh(field.name)
                        self.line(f"{content} = bytearray()")
                        with self._into(content):
                            self._field(field, cls, f"{value}.{field.name}")
                            self._flush()
                        self.line(f"{tags} += uvarint({field.tag}) + uvarint(len({content})) + {content}")
                        self.line(f"{count} += 1")
                self.line(f"{self._out} += uvarint({count}) + {tags}")
            self._run = waiting
        self._run.append(("x", ""))  # no tagged fields: one zero byte
        if tagged:
            with self.block("else:"):
                self._flush()

    def _is_default(self, field: Field, cls: StructType, value: str) -> str:
        default = default_of(field, cls)
        if default is None:
            return f"{value} is None"
        if default == ():
            return f"({value} is not None and not {value})"
        name = self.constant(f"default_{field.name}", default)
        return f"({value} is {name} or {value} == {name})"

    @contextmanager
    def _into(self, out: str) -> Iterator[None]:
        """Let the code inside append to another buffer."""
        outer, self._out = self._out, out
        yield
        self._out = outer

    def _length(self, code: str, compact: str | None) -> None:
        """Write `n`, together with the fixed-size values before it."""
        if compact is None:
            self._run.append((code, "n"))
            self._flush()
            return
        waiting = self._run.copy()
        self._run.append(("B", "n"))
        with self.block("if n < 128:"):
            self._flush()
        with self.block("else:"):
            self._run = waiting
            self._flush()
            self.line(f"{self._out} += {compact}(n)")

    def _flush(self) -> None:
        if not self._run:
            return
        layout = Layout(">" + "".join(code for code, _ in self._run))
        values = ", ".join(value for code, value in self._run if code != "x")
        if layout.format == ">B":
            self.line(f"{self._out}.append({values})")
        elif layout.format == ">x":
            self.line(f"{self._out}.append(0)")
        else:
            packer = self.interned("pack", layout.format, lambda: layout.pack)
            self.line(f"{self._out} += {packer}({values})")
        self._run = []
