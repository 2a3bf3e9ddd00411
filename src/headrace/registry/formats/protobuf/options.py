"""Options in .proto files, predefined and custom ones."""

from collections.abc import Iterator
from typing import Any

from google.protobuf import message_factory, text_encoding, text_format  # type: ignore[import-untyped]
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from google.protobuf.descriptor_pool import DescriptorPool  # type: ignore[import-untyped]
from google.protobuf.message import Message  # type: ignore[import-untyped]

from headrace.registry.formats.protobuf.names import Names

_QUOTED = frozenset({FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES})


class Options:
    """Writes options; `extensions` is whether custom options are written."""

    def __init__(self, pool: DescriptorPool, names: Names, *, extensions: bool = True) -> None:
        self._pool = pool
        self._names = names
        self._extensions = extensions

    def statements(self, options: Message, scope: str, indent: str) -> Iterator[str]:
        """Yield one statement per option, as in files and messages."""
        for name, value in self._all(options, scope):
            yield f"{indent}option {name} = {value};"

    def brackets(self, options: Message, scope: str, *others: str) -> str:
        """Return options as they follow a field, with a leading space; "" if there are none."""
        listed = [*others, *(f"{name} = {value}" for name, value in self._all(options, scope))]
        return f" [{', '.join(listed)}]" if listed else ""

    def _all(self, options: Message, scope: str) -> Iterator[tuple[str, str]]:
        """Yield names and values. Custom options are unknown fields outside of a pool with their types."""
        try:
            known = self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
        except KeyError:
            known = options.DESCRIPTOR
        read = message_factory.GetMessageClass(known).FromString(options.SerializeToString())
        yield from self._fields(read, scope, "")

    def _fields(self, message: Message, scope: str, prefix: str) -> Iterator[tuple[str, str]]:
        for field, value in message.ListFields():
            if field.is_extension and not self._extensions:
                continue
            own = f"({self._names.within(scope, field.full_name)})" if field.is_extension else field.name
            name = f"{prefix}{own}"
            if field.name == "features" and not field.is_extension:
                yield from self._fields(value, scope, f"{name}.")
            elif field.is_repeated:
                yield from ((name, self._value(field, item)) for item in value)
            elif field.is_extension and prefix:  # one language's features
                yield from self._fields(value, scope, f"{name}.")
            else:
                yield name, self._value(field, value)

    def _value(self, field: FieldDescriptor, value: Any) -> str:
        if field.type in _QUOTED:
            return quoted(value)
        if field.enum_type is not None:
            return str(field.enum_type.values_by_number[value].name)
        if field.message_type is not None:
            return f"{{ {text_format.MessageToString(value, as_one_line=True, descriptor_pool=self._pool)} }}"
        return str(value).lower() if isinstance(value, bool) else repr(value)


def quoted(value: str | bytes) -> str:
    """Return a string or bytes as a literal of a .proto file."""
    return f'"{text_encoding.CEscape(value, as_utf8=isinstance(value, str))}"'
