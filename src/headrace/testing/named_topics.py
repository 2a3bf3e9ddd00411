"""The topics that a request names: which they are, the request without some, and an answer made of two.

A fault may concern one topic of a request. The others are answered as if there were none.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from headrace.protocol.fields import ZERO_UUID
from headrace.protocol.structs import Struct, StructType
from headrace.testing.refusals import TOPIC_NAMES, replaced

NameOf = Callable[[bytes], str | None]
"""The name of the topic with this id."""

_TOPICS: Final = ("topics", "topic_data", "topic_partitions", "topic_names")
_GROUPS: Final = "groups"  # of OffsetFetch: each has topics


def names_topics(request: StructType) -> bool:
    """Whether requests of this class name topics."""
    names = {declared.name for declared in request.__fields__ if declared.is_array}
    groups = [each for each in request.__fields__ if each.name == _GROUPS and each.holds_structs]
    return not names.isdisjoint(_TOPICS) or bool(groups)


def topics_of(request: Any, name_of: NameOf) -> Iterator[str]:
    """The names of the topics in `request`."""
    for _, items in _arrays(request, _TOPICS):
        yield from filter(None, (_topic(each, name_of) for each in items))
    for _, groups in _arrays(request, (_GROUPS,)):
        for group in groups:
            if isinstance(group, Struct):
                yield from topics_of(group, name_of)


def with_topics(request: Any, wanted: Callable[[str | None], bool], name_of: NameOf) -> Any:
    """The request with those of its topics that are wanted; None is one whose name nobody knows."""
    kept: dict[str, Any] = {
        name: [each for each in items if wanted(_topic(each, name_of))]
        for name, items in _arrays(request, _TOPICS)
    }
    for name, groups in _arrays(request, (_GROUPS,)):
        kept[name] = [
            with_topics(each, wanted, name_of) if isinstance(each, Struct) else each for each in groups
        ]
    return replaced(request, **kept)


def merged(served: Any, refused: Any) -> Any:
    """One response of two about different topics."""
    both: dict[str, Any] = {}
    for declared in type(served).__fields__:
        ours, theirs = getattr(served, declared.name) or (), getattr(refused, declared.name) or ()
        if declared.name == _GROUPS:
            both[_GROUPS] = [merged(*pair) for pair in zip(ours, theirs, strict=True)]
        elif declared.is_array and any(_is_about_a_topic(each) for each in (*ours, *theirs)):
            both[declared.name] = [*ours, *theirs]
    return replaced(served, **both)


def _arrays(struct: Any, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for declared in type(struct).__fields__:
        if declared.name in names and declared.is_array:
            yield declared.name, getattr(struct, declared.name) or ()


def _topic(item: Any, name_of: NameOf) -> str | None:
    if isinstance(item, str):
        return item
    topic_id = getattr(item, "topic_id", ZERO_UUID)
    if topic_id != ZERO_UUID:
        return name_of(topic_id)
    return getattr(item, "name", None) or getattr(item, "topic", None)


def _is_about_a_topic(item: Any) -> bool:
    return isinstance(item, Struct) and any(each.name in TOPIC_NAMES for each in type(item).__fields__)
