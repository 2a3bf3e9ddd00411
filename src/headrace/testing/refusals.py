"""The response by which a request of any API fails, made from what the two look like.

A response says what went wrong once, at its top, or for each thing that the request names: a partition of a
topic, a group, a resource. In the second case it names those things again, and so does a refusal.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from headrace.protocol.api import ApiKey, response_class
from headrace.protocol.errors import ErrorCode
from headrace.protocol.fields import REQUIRED, Field
from headrace.protocol.structs import Struct, StructType, all_defaults, struct_named

TOPIC_NAMES: Final = ("name", "topic", "topic_id")
_NAMES: Final = (
    *TOPIC_NAMES,
    *("index", "partition", "partition_index", "topic_name"),
    *("group_id", "member_id", "group_instance_id"),
    *("resource_type", "resource_name"),
)
"""The fields that say what a struct is about; a request and its response call them the same."""
_OTHERWISE: Final = {"partition_index": "partition", "topic_name": "name"}  # what some requests call them

_OF_A_BROKER: Final = ("node_id", "port")
OF_A_SESSION: Final = {
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
}


def refusal(key: int, request: Struct, version: int, code: ErrorCode, *, by_topic: bool = False) -> Any:
    """The response that refuses all of `request`, at the outermost place that the API has for it.

    With `by_topic`, and for Fetch, that is with each topic or partition.
    """
    by_topic = by_topic or (key == ApiKey.FETCH and code not in OF_A_SESSION)
    return _refused(response_class(key), request, version, code, by_topic=by_topic)


def refuses_by_topic(key: int, version: int) -> bool:
    """Whether this API can refuse one topic and serve another."""
    return _has_errors_of_topics(response_class(key), version)


def replaced(struct: Any, **values: Any) -> Any:
    """A copy with other values in some fields."""
    kept = {declared.name: getattr(struct, declared.name) for declared in type(struct).__fields__}
    return type(struct)(**kept | values)


def _refused(cls: StructType, about: Any, version: int, code: ErrorCode, *, by_topic: bool) -> Any:
    said = {**_nothing(cls), **dict(_names(cls, about, version))}
    fields = {declared.name for declared in cls.__fields__ if declared.exists_in(version)}
    if "error_code" in fields and not (by_topic and _has_errors_of_topics(cls, version)):
        said["error_code"] = int(code)
        if "error_message" in fields:
            said["error_message"] = f"{code.name}, by a fault of the test"
    else:
        for declared in _arrays(cls, version):
            item = struct_named(declared.item_kind, cls)
            if _has_errors(item, version):
                said[declared.name] = [
                    _refused(item, each, version, code, by_topic=by_topic and not _is_topic(item))
                    for each in _named_in(about, item, version)
                ]
    return replaced(all_defaults(cls), **said)


def _nothing(cls: StructType) -> dict[str, Any]:
    """What stands for no offset and no broker: a high watermark of 0 would say that a log is empty."""
    return {
        each.name: -1
        for each in cls.__fields__
        if each.default is REQUIRED and (each.kind == "int64" or each.name in _OF_A_BROKER)
    }


def _named_in(about: Struct | None, item: StructType, version: int) -> Sequence[Any]:
    """What a request names that an array of `item` says something about; None: nothing in particular."""
    if about is None:
        return [None]
    for declared in type(about).__fields__:
        if not declared.is_array or not declared.exists_in(version):
            continue
        named: Sequence[Any] = getattr(about, declared.name) or ()
        if not declared.holds_structs or _shares_names(
            item, struct_named(declared.item_kind, type(about)), version
        ):
            return named
    return _named_below(about, item, version) or [None]


def _named_below(about: Struct, item: StructType, version: int) -> Sequence[Any]:
    """The same one level below, where a request sorts what it names by something that has no error."""
    return [
        named
        for outer in _arrays(type(about), version)
        for inner in _arrays(struct_named(outer.item_kind, type(about)), version)
        if _shares_names(item, struct_named(inner.item_kind, type(about)), version)
        for each in getattr(about, outer.name) or ()
        for named in getattr(each, inner.name) or ()
    ]


def _names(cls: StructType, about: Any, version: int) -> Iterator[tuple[str, Any]]:
    """The fields of `cls` that say what it is about, as `about` has them: a struct, or a plain name."""
    if not isinstance(about, Struct):
        if about is not None:
            yield next((each.name, about) for each in cls.__fields__ if _is_name_of(each, about, version))
        return
    theirs = _name_fields(type(about), version)
    for name in _name_fields(cls, version):
        if name in theirs:
            yield name, getattr(about, name)
        elif _OTHERWISE.get(name) in theirs:
            yield name, getattr(about, _OTHERWISE[name])


def _is_name_of(declared: Field, value: object, version: int) -> bool:
    kind = "string" if isinstance(value, str) else "int32"
    return declared.kind == kind and declared.name != "error_message" and declared.exists_in(version)


def _name_fields(cls: StructType, version: int) -> set[str]:
    return {each.name for each in cls.__fields__ if each.name in _NAMES and each.exists_in(version)}


def _shares_names(one: StructType, other: StructType, version: int) -> bool:
    theirs = _name_fields(other, version)
    return any(name in theirs or _OTHERWISE.get(name) in theirs for name in _name_fields(one, version))


def _is_topic(cls: StructType) -> bool:
    return any(declared.name in TOPIC_NAMES for declared in cls.__fields__)


def _arrays(cls: StructType, version: int) -> Iterator[Field]:
    return (
        each for each in cls.__fields__ if each.is_array and each.holds_structs and each.exists_in(version)
    )


def _items(cls: StructType, version: int) -> Iterator[StructType]:
    return (struct_named(declared.item_kind, cls) for declared in _arrays(cls, version))


def _has_errors(cls: StructType, version: int) -> bool:
    own = any(each.name == "error_code" and each.exists_in(version) for each in cls.__fields__)
    return own or any(_has_errors(item, version) for item in _items(cls, version))


def _has_errors_of_topics(cls: StructType, version: int) -> bool:
    """Whether there are errors of single topics somewhere below `cls`."""
    return any(
        _has_errors(item, version) if _is_topic(item) else _has_errors_of_topics(item, version)
        for item in _items(cls, version)
    )
