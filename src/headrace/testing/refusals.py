"""The response with which a request of any API fails, and the topics that requests and responses name.

A response has one error code at its top, or one for each thing that the request names: a partition, a group,
a resource. In the second case it names these things again, and so does a refusal. A fault may concern one
topic of a request; the others are served as usual, and the two responses are merged.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from headrace.protocol.api import ApiKey, response_class
from headrace.protocol.compiled.structs import Struct, StructType, all_defaults, struct_named
from headrace.protocol.errors import ErrorCode
from headrace.protocol.fields import REQUIRED, ZERO_UUID, Field

TopicName = Callable[[bytes], str | None]
"""Returns the name of the topic with an id."""

TOPIC_NAMES: Final = ("name", "topic", "topic_id")
_NAMES: Final = (
    *TOPIC_NAMES,
    *("index", "partition", "partition_index", "topic_name"),
    *("group_id", "member_id", "group_instance_id"),
    *("transactional_id", "producer_id"),
    *("resource_type", "resource_name"),
)
"""The fields that identify what a struct is about; they have the same names in a request and its response."""
_SYNONYMS: Final = {"partition_index": "partition", "topic_name": "name"}  # in some requests

_ERROR_CODES: Final = ("error_code", "partition_error_code")
_OF_A_BROKER: Final = ("node_id", "port")
OF_A_SESSION: Final = {
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
}
_TOPICS: Final = ("topics", "topic_data", "topic_partitions", "topic_names")
_OUTER: Final = ("groups", "markers")  # of OffsetFetch and WriteTxnMarkers: each has topics


def refusal(key: int, request: Struct, version: int, code: ErrorCode, *, by_topic: bool = False) -> Any:
    """Return the response that refuses all of `request`, with the error code at its outermost place.

    With `by_topic`, and for Fetch, the error code is that of each topic or partition.
    """
    by_topic = by_topic or (key == ApiKey.FETCH and code not in OF_A_SESSION)
    return _refused(response_class(key), request, version, code, by_topic=by_topic)


def refuses_by_topic(key: int, version: int) -> bool:
    """Return whether this API can refuse one topic and serve another."""
    return _has_topic_errors(response_class(key), version)


def replaced(struct: Any, **values: Any) -> Any:
    """Return a copy with other values in some fields."""
    kept = {declared.name: getattr(struct, declared.name) for declared in type(struct).__fields__}
    return type(struct)(**kept | values)


def _refused(cls: StructType, about: Any, version: int, code: ErrorCode, *, by_topic: bool) -> Any:
    # Offsets and brokers are -1: a high watermark of 0 would mean that the log is empty.
    values: dict[str, Any] = {
        field.name: -1
        for field in cls.__fields__
        if field.default is REQUIRED and (field.kind == "int64" or field.name in _OF_A_BROKER)
    }
    values |= dict(_names(cls, about, version))
    fields = {declared.name for declared in cls.__fields__ if declared.exists_in(version)}
    error_code = next((name for name in _ERROR_CODES if name in fields), None)
    if error_code is not None and not (by_topic and _has_topic_errors(cls, version)):
        values[error_code] = int(code)
        if "error_message" in fields:
            values["error_message"] = f"{code.name}, by a fault of the test"
    else:
        for declared in _struct_arrays(cls, version):
            item = struct_named(declared.item_kind, cls)
            if _has_errors(item, version):
                values[declared.name] = [
                    _refused(item, each, version, code, by_topic=by_topic and not _is_topic(item))
                    for each in _named_in(about, item, version)
                ]
    return replaced(all_defaults(cls), **values)


def _named_in(about: Struct | None, item: StructType, version: int) -> Sequence[Any]:
    """Return the things in a request that an array of `item` is about; [None] if there are none."""
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
    """Return the same from one level below, for requests that group things under one without an error."""
    return [
        named
        for outer in _struct_arrays(type(about), version)
        for inner in _struct_arrays(struct_named(outer.item_kind, type(about)), version)
        if _shares_names(item, struct_named(inner.item_kind, type(about)), version)
        for each in getattr(about, outer.name) or ()
        for named in getattr(each, inner.name) or ()
    ]


def _names(cls: StructType, about: Any, version: int) -> Iterator[tuple[str, Any]]:
    """Yield the identifying fields of `cls` with their values in `about`: a struct, or a plain name."""
    if not isinstance(about, Struct):
        kind = "string" if isinstance(about, str) else "int32"
        for declared in cls.__fields__ if about is not None else ():
            if declared.kind == kind and declared.name != "error_message" and declared.exists_in(version):
                yield declared.name, about
                return
        return
    theirs = _name_fields(type(about), version)
    for name in _name_fields(cls, version):
        if name in theirs:
            yield name, getattr(about, name)
        elif _SYNONYMS.get(name) in theirs:
            yield name, getattr(about, _SYNONYMS[name])


def _name_fields(cls: StructType, version: int) -> set[str]:
    return {field.name for field in cls.__fields__ if field.name in _NAMES and field.exists_in(version)}


def _shares_names(one: StructType, other: StructType, version: int) -> bool:
    theirs = _name_fields(other, version)
    return any(name in theirs or _SYNONYMS.get(name) in theirs for name in _name_fields(one, version))


def _is_topic(cls: StructType) -> bool:
    return any(declared.name in TOPIC_NAMES for declared in cls.__fields__)


def _struct_arrays(cls: StructType, version: int) -> Iterator[Field]:
    return (
        each for each in cls.__fields__ if each.is_array and each.holds_structs and each.exists_in(version)
    )


def _items(cls: StructType, version: int) -> Iterator[StructType]:
    return (struct_named(declared.item_kind, cls) for declared in _struct_arrays(cls, version))


def _has_errors(cls: StructType, version: int) -> bool:
    own = any(field.name in _ERROR_CODES and field.exists_in(version) for field in cls.__fields__)
    return own or any(_has_errors(item, version) for item in _items(cls, version))


def _has_topic_errors(cls: StructType, version: int) -> bool:
    """Return whether a topic somewhere below `cls` can have an error of its own."""
    return any(
        _has_errors(item, version) if _is_topic(item) else _has_topic_errors(item, version)
        for item in _items(cls, version)
    )


# -- the topics of a request -----------------------------------------------------------------------


def names_topics(request: StructType) -> bool:
    """Return whether requests of this class name topics."""
    names = {declared.name for declared in request.__fields__ if declared.is_array}
    outer = [field for field in request.__fields__ if field.name in _OUTER and field.holds_structs]
    return not names.isdisjoint(_TOPICS) or bool(outer)


def topics_of(request: Any, name_of: TopicName) -> Iterator[str]:
    """Yield the names of the topics in `request`."""
    for _, items in _arrays(request, _TOPICS):
        yield from filter(None, (_topic(each, name_of) for each in items))
    for _, items in _arrays(request, _OUTER):
        for each in items:
            if isinstance(each, Struct):
                yield from topics_of(each, name_of)


def with_topics(request: Any, keep: Callable[[str | None], bool], name_of: TopicName) -> Any:
    """Return the request with those of its topics that `keep` accepts; None is an unknown topic."""
    kept: dict[str, Any] = {
        name: [each for each in items if keep(_topic(each, name_of))]
        for name, items in _arrays(request, _TOPICS)
    }
    for name, items in _arrays(request, _OUTER):
        kept[name] = [
            with_topics(each, keep, name_of) if isinstance(each, Struct) else each for each in items
        ]
    return replaced(request, **kept)


def merged(served: Any, refused: Any) -> Any:
    """Return one response from two that are about different topics."""
    both: dict[str, Any] = {}
    for declared in type(served).__fields__:
        ours, theirs = getattr(served, declared.name) or (), getattr(refused, declared.name) or ()
        if declared.name in _OUTER:
            both[declared.name] = [merged(*pair) for pair in zip(ours, theirs, strict=True)]
        elif declared.is_array and any(
            isinstance(each, Struct) and _is_topic(type(each)) for each in (*ours, *theirs)
        ):
            both[declared.name] = [*ours, *theirs]
    return replaced(served, **both)


def _arrays(struct: Any, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for declared in type(struct).__fields__:
        if declared.name in names and declared.is_array:
            yield declared.name, getattr(struct, declared.name) or ()


def _topic(item: Any, name_of: TopicName) -> str | None:
    if isinstance(item, str):
        return item
    topic_id = getattr(item, "topic_id", ZERO_UUID)
    if topic_id != ZERO_UUID:
        return name_of(topic_id)
    return getattr(item, "name", None) or getattr(item, "topic", None)
