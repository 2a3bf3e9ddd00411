"""Deserialisation of keys and values, and the handling of records that cannot be read."""

from collections.abc import Callable, Iterator
from functools import partial
from operator import length_hint
from typing import Any, Literal, NoReturn

from headrace.client.consumer.buffer import Record
from headrace.client.consumer.message import Batch, Keyed, Message, plain
from headrace.client.errors import BadSetting, NotReadable, Unreachable
from headrace.client.serializers.formats import Field, close, format_of

OnBad = Literal["raise", "skip"] | Callable[[NotReadable], object]


class Decoding:
    """The formats of one consumer, and its `on_bad`."""

    def __init__(self, key: object, value: object, registry: object, on_bad: OnBad) -> None:
        self._key, self._value = format_of(key, registry), format_of(value, registry)
        self._plain = self._key is None and self._value is None
        self._refused: list[Record] = []  # records of the last batch whose error was raised, or will be
        self._on_bad: Callable[[NotReadable], object]
        if callable(on_bad):
            self._on_bad = on_bad
        elif on_bad in {"raise", "skip"}:
            self._on_bad = self._refuse if on_bad == "raise" else lambda _: None
        else:
            raise BadSetting(f"on_bad is 'raise', 'skip' or a function, not {on_bad!r}")

    def messages(self, records: Iterator[Record], batch: list[Record]) -> Iterator[Message[Any, Any]]:
        """Yield the records as messages. `records` is an iterator over `batch`, whose position is used."""
        self._refused = []
        if self._plain:
            return plain(records, batch)
        return filter(None, map(partial(self._decoded_from, records, batch), records))

    def _decoded_from(self, records: Any, batch: list[Record], record: Record) -> Message[Any, Any] | None:
        """Return the record as a message; if the registry is unreachable, it stays the next of its batch."""
        try:
            return self._decoded(record)
        except Unreachable:
            records.__setstate__(len(batch) - length_hint(records) - 1)
            raise

    def batch(self, records: list[Record]) -> tuple[Batch[Any, Any], NotReadable | None]:
        """Return the records up to the first whose error is to be raised, and that error."""
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
        """Return all records, with NotReadable for errors and None for skipped records."""
        self._refused = []
        return [self._attempt(record) for record in batch]

    def refused(self, record: Record) -> bool:
        """Whether the error of this record was raised, so that it counts as done."""
        return any(each is record for each in self._refused)

    def close(self) -> None:
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
        except Unreachable:  # the registry did not answer: the record may be valid
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
