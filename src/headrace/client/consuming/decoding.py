"""From librdkafka's messages to ours: keys and values by their formats, and what becomes of bad ones."""

from collections.abc import Callable, Iterator
from functools import partial
from operator import length_hint
from typing import Any, Literal, NoReturn

from headrace.client.consuming.buffer import Record
from headrace.client.consuming.message import Batch, Keyed, Message, plain
from headrace.client.errors import BadSetting, NotReadable, Unreachable
from headrace.client.serializers.formats import Field, close, format_of

OnBad = Literal["raise", "skip"] | Callable[[NotReadable], object]


class Decoding:
    """What all records of one consumer have done to them."""

    def __init__(self, key: object, value: object, registry: object, on_bad: OnBad) -> None:
        self._key, self._value = format_of(key, registry), format_of(value, registry)
        self._plain = self._key is None and self._value is None
        self._refused: list[Record] = []  # of the last batch: what was raised, or will be
        self._on_bad: Callable[[NotReadable], object]
        if callable(on_bad):
            self._on_bad = on_bad
        elif on_bad in {"raise", "skip"}:
            self._on_bad = self._refuse if on_bad == "raise" else _pass_over
        else:
            raise BadSetting(f"on_bad is 'raise', 'skip' or a function, not {on_bad!r}")

    def messages(self, records: Iterator[Record], batch: list[Record]) -> Iterator[Message[Any, Any]]:
        """The records as messages. `records` is an iterator over `batch`, and tells how far it has come."""
        self._refused = []
        if self._plain:
            return plain(records, batch)
        return filter(None, map(partial(self._decoded_from, records, batch), records))

    def _decoded_from(self, records: Any, batch: list[Record], record: Record) -> Message[Any, Any] | None:
        """The record as a message. One that cannot be decoded just now stays the next of its batch."""
        try:
            return self._decoded(record)
        except Unreachable:
            records.__setstate__(len(batch) - length_hint(records) - 1)
            raise

    def batch(self, records: list[Record]) -> tuple[Batch[Any, Any], NotReadable | None]:
        """The records up to the first that cannot be read and is to be raised, and why it cannot."""
        self._refused = []
        if self._plain:
            return Batch(records), None
        messages: list[Message[Any, Any]] = []
        for found in map(self._attempt, records):
            if isinstance(found, NotReadable):
                return Batch(records, messages), found
            if found is not None:
                messages.append(found)
        return Batch(records, messages), None

    def all(self, batch: list[Record]) -> "list[Message[Any, Any] | NotReadable | None]":
        """The same at once, with what would be raised in its place and None for what is passed over."""
        self._refused = []
        return [self._attempt(record) for record in batch]

    def refused(self, record: Record) -> bool:
        """Whether this was raised in its place, which says all there is to say about it."""
        return any(each is record for each in self._refused)

    def close(self) -> None:
        """Be done with the formats."""
        close(self._key, self._value)

    def _attempt(self, record: Record) -> "Message[Any, Any] | NotReadable | None":
        try:
            return self._decoded(record)
        except NotReadable as error:
            return error

    def _decoded(self, record: Record) -> Message[Any, Any] | None:
        key, value = record.key(), record.value()
        try:
            if self._value is not None and value is not None:
                value = self._read(self._value, value, "value", record)
            if self._key is not None and key is not None:
                return Keyed((value, record, self._read(self._key, key, "key", record)))
        except NotReadable as error:
            self._on_bad(error)
            return None
        return Message((value, record))

    def _refuse(self, error: NotReadable) -> NoReturn:
        self._refused.append(error.raw)
        raise error

    @staticmethod
    def _read(by: Any, data: bytes, field: Field, record: Record) -> Any:
        try:
            return by.deserialize(data, record.topic(), field, record.headers())
        except Unreachable:  # the registry: that says nothing about the record
            raise
        except Exception as error:
            raise NotReadable(
                topic=record.topic(),
                partition=record.partition(),
                offset=record.offset(),
                field=field,
                why=f"{type(error).__name__}: {error}",
                raw=record,
            ) from error


def _pass_over(_error: NotReadable) -> None:
    return
