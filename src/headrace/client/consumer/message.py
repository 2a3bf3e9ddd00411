"""A record that was read.

A pair, made by C: the value as its deserialiser gave it, and librdkafka's message, which is asked for the
rest when somebody wants to know. A class with seven fields of its own would cost as much as all of
librdkafka's work on a small record.
"""

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

import confluent_kafka

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    K = DefaultTypeVar("K", default=bytes)
    V = DefaultTypeVar("V", default=bytes)
else:
    K, V = TypeVar("K"), TypeVar("V")

_value: Final = confluent_kafka.Message.value


class Message(tuple[Any, ...], Generic[K, V]):
    """A record, where it stands, and when it was written. Its key and its value may be None."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def value(self) -> V:
            """The value, as its deserialiser gave it."""

        @property
        def raw(self) -> Any:
            """The message as librdkafka gave it."""

    else:
        value = property(itemgetter(0), doc="The value, as its deserialiser gave it.")
        raw = property(itemgetter(1), doc="The message as librdkafka gave it.")

    @property
    def topic(self) -> str:
        """The topic that it was read from."""
        return self[1].topic()  # type: ignore[no-any-return]

    @property
    def partition(self) -> int:
        """The partition that it was read from."""
        return self[1].partition()  # type: ignore[no-any-return]

    @property
    def offset(self) -> int:
        """Its number in the partition."""
        return self[1].offset()  # type: ignore[no-any-return]

    @property
    def key(self) -> K:
        """The key, as its deserialiser gave it."""
        return self[1].key()  # type: ignore[no-any-return]

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """Its headers, in order; a name may come twice."""
        return self[1].headers() or []

    @property
    def timestamp_ms(self) -> int | None:
        """When it was written, by the producer's clock or by the broker's: the topic's settings say whose."""
        kind, timestamp_ms = self[1].timestamp()
        return timestamp_ms if kind else None

    def __repr__(self) -> str:
        place = f"{self.topic}-{self.partition} at {self.offset}"
        return f"Message({place}: key={self.key!r:.80}, value={self.value!r:.80})"


class Keyed(Message[K, V]):
    """The same with a key that is not bytes. Librdkafka's message keeps its own: it may be read again."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def key(self) -> K:
            """The key, as its deserialiser gave it."""

    else:
        key = property(itemgetter(2), doc="The key, as its deserialiser gave it.")


class Batch(Sequence[Message[K, V]]):
    """Messages that came together. Plain bytes become messages only when one looks: `values()` does not."""

    __slots__ = ("_messages", "_records")

    def __init__(self, records: list[Any], messages: list[Message[K, V]] | None = None) -> None:
        """`messages` are for records whose keys and values are not bytes."""
        self._records = records
        self._messages = messages

    def __len__(self) -> int:
        return len(self._records if self._messages is None else self._messages)

    def __iter__(self) -> Iterator[Message[K, V]]:
        return plain(self._records, self._records) if self._messages is None else iter(self._messages)

    @overload
    def __getitem__(self, index: int) -> Message[K, V]: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message[K, V]]: ...
    def __getitem__(self, index: int | slice) -> Message[K, V] | list[Message[K, V]]:
        return list(self)[index]

    def values(self) -> list[V]:
        """The values alone."""
        if self._messages is None:
            return list(map(_value, self._records))
        return [message.value for message in self._messages]

    def __repr__(self) -> str:
        return f"Batch({len(self)} messages)"


def plain(records: Iterable[Any], batch: Iterable[Any]) -> Iterator[Message[Any, Any]]:
    """Librdkafka's messages as ours, by C alone; both arguments are the same records."""
    return map(Message, zip(map(_value, records), batch, strict=False))
