"""A record that was read.

A tuple of the deserialised value and librdkafka's message, created by C code. The properties read the rest
from librdkafka's message: seven fields of our own would cost as much as librdkafka's work on a small record.
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
    """A record with its topic, partition, offset and timestamp. Its key and its value may be None."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def value(self) -> V:
            """The deserialised value."""

        @property
        def raw(self) -> Any:
            """The message of librdkafka."""

    else:
        value = property(itemgetter(0), doc="The deserialised value.")
        raw = property(itemgetter(1), doc="The message of librdkafka.")

    @property
    def topic(self) -> str:
        """The topic of the record."""
        return self[1].topic()  # type: ignore[no-any-return]

    @property
    def partition(self) -> int:
        """The partition of the record."""
        return self[1].partition()  # type: ignore[no-any-return]

    @property
    def offset(self) -> int:
        """The offset of the record in its partition."""
        return self[1].offset()  # type: ignore[no-any-return]

    @property
    def key(self) -> K | None:
        """The deserialised key; None if the record has no key."""
        return self[1].key()  # type: ignore[no-any-return]

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """The headers of the record, in order; a name may occur twice."""
        return self[1].headers() or []

    @property
    def timestamp_ms(self) -> int | None:
        """The producer's timestamp or the broker's, as message.timestamp.type of the topic says."""
        kind, timestamp_ms = self[1].timestamp()
        return timestamp_ms if kind else None

    def __repr__(self) -> str:
        place = f"{self.topic}-{self.partition} at {self.offset}"
        return f"Message({place}: key={self.key!r:.80}, value={self.value!r:.80})"


class Keyed(Message[K, V]):
    """A message with a deserialised key; librdkafka's message keeps the bytes, for another read."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def key(self) -> K | None:
            """The deserialised key; None if the record has no key."""

    else:
        key = property(itemgetter(2), doc="The deserialised key; None if the record has no key.")


class Batch(Sequence[Message[K, V]]):
    """Messages that arrived together. Plain bytes become messages on access; `values()` needs none."""

    __slots__ = ("_messages", "_records")

    def __init__(self, records: list[Any], messages: list[Message[K, V]] | None = None) -> None:
        """`messages` are given if keys or values are deserialised."""
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
        """Return the values of all messages."""
        if self._messages is None:
            return list(map(_value, self._records))
        return [message.value for message in self._messages]

    def __repr__(self) -> str:
        return f"Batch({len(self)} messages)"


def plain(records: Iterable[Any], batch: Iterable[Any]) -> Iterator[Message[Any, Any]]:
    """Yield librdkafka's messages as ours, in C code; both arguments are the same records."""
    return map(Message, zip(map(_value, records), batch, strict=False))
