"""The base of all message classes: slotted, keyword-only, frozen for the type checker.

They look like dataclasses and are cheaper to define: a broker imports hundreds of them, and
@dataclass takes 0.4 ms for each where this takes about 20 us. The rest of the cost is paid on first use, by
`__init__` here and by the codecs.
"""

import sys
from typing import Any, dataclass_transform

from headrace.protocol.compiled.source import FIXED
from headrace.protocol.fields import ALL_DEFAULTS, IMPLIED_DEFAULTS, REQUIRED, Field, field


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class StructType(type):
    """Turns the declared fields of a class into slots."""

    __fields__: tuple[Field, ...]

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> "StructType":
        """Create the class; `options` are for its `__init_subclass__`."""
        fields = {key: value for key, value in namespace.items() if type(value) is Field}
        for key, declared in fields.items():
            declared.name = key
            del namespace[key]  # a slot of that name takes its place
        namespace["__slots__"] = tuple(fields)
        namespace["__fields__"] = tuple(fields.values())
        return super().__new__(cls, name, bases, namespace, **options)


class Struct(metaclass=StructType):
    """A struct on the wire. Treat it as immutable: defaults are shared."""

    def __init__(self, **values: Any) -> None:
        """Create the first instance of a class, and the `__init__` for all others."""
        cls = type(self)
        setattr(cls, "__init__", _compile_init(cls))  # noqa: B010 (mypy forbids to assign a method)
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same class and equal fields; lists and tuples are equal."""
        if type(self) is not type(other):
            return NotImplemented
        names = [declared.name for declared in type(self).__fields__]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]  # its arrays may be lists

    def __repr__(self) -> str:
        """Like a dataclass, with buffers by their size."""
        names = [declared.name for declared in type(self).__fields__]
        values = ", ".join(f"{name}={_shown(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({values})"


def struct_named(name: str, near: StructType) -> StructType:
    """Return the class that a field of `near` calls `name`, from the same module."""
    found = getattr(sys.modules[near.__module__], name)
    assert isinstance(found, StructType), f"{near.__name__} names {found} as a struct"
    return found


def default_of(declared: Field, owner: StructType) -> Any:
    """Return the value of a field that is not given, or that a version does not have."""
    if declared.default is ALL_DEFAULTS:
        return all_defaults(struct_named(declared.item_kind, owner))
    if declared.default is not REQUIRED:
        return declared.default
    if declared.is_array:
        return ()
    if declared.holds_structs:
        return all_defaults(struct_named(declared.item_kind, owner))
    return IMPLIED_DEFAULTS[declared.kind]


def all_defaults(cls: StructType) -> Any:
    """Return the shared instance of `cls` with every field at its default."""
    if cls not in _ALL_DEFAULTS:
        instance = _new(cls)
        for declared in cls.__fields__:
            setattr(instance, declared.name, default_of(declared, cls))
        _ALL_DEFAULTS[cls] = instance
    return _ALL_DEFAULTS[cls]


_new: Any = object.__new__
_ALL_DEFAULTS: dict[StructType, Any] = {}  # bounded by the number of struct classes


def _compile_init(cls: StructType) -> Any:
    """Return `def __init__(self, *, a, b=...)` with a store for each field."""
    defaults: dict[str, Any] = {}
    parameters, stores = [], []
    for declared in cls.__fields__:
        if declared.default is REQUIRED:
            parameters.append(declared.name)
        else:
            defaults[f"_{declared.name}"] = default_of(declared, cls)
            parameters.append(f"{declared.name}=_{declared.name}")
        stores.append(f"    self.{declared.name} = {declared.name}\n")
    star = "*, " if parameters else ""
    source = f"def __init__(self, {star}{', '.join(parameters)}):\n{''.join(stores) or '    pass'}"
    exec(source, defaults)  # noqa: S102 (it consists of field names of our own classes)
    init = defaults["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"  # for TypeErrors
    return init


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


def _shown(value: Any) -> str:
    return f"<{value.nbytes} bytes>" if isinstance(value, memoryview) else repr(value)


def minimal_size(cls: StructType, version: int, flexible: bool) -> int:
    """Return the minimal encoded size of an instance, at least 1.

    A frame of S bytes holds at most S // minimal_size instances, whatever its count says.
    """
    return max(1, _least_of_struct(cls, version, flexible))


def _least_of_struct(cls: StructType, version: int, flexible: bool) -> int:
    fields = (field for field in cls.__fields__ if field.exists_in(version) and field.tag is None)
    return flexible + sum(_least(field, cls, version, flexible) for field in fields)


def _least(field: Field, cls: StructType, version: int, flexible: bool) -> int:
    if field.kind in FIXED:
        return FIXED[field.kind][1]
    if field.holds_structs and not field.is_array:
        nullable = field.nullable_in(version)
        return 1 if nullable else _least_of_struct(struct_named(field.kind, cls), version, flexible)
    if field.flexible_in(version, flexible):
        return 1
    return 2 if field.kind == "string" else 4


def holds_records(cls: StructType, version: int) -> bool:
    fields = [field for field in cls.__fields__ if field.exists_in(version)]
    return any(field.kind == "records" for field in fields) or any(
        holds_records(struct_named(field.item_kind, cls), version) for field in fields if field.holds_structs
    )
