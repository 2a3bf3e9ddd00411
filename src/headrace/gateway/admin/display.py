"""Records as JSON messages, and the filter of a search or a tail."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace.client.records.one_by_one import Record
from headrace.client.serializers.codecs.plain_json import NotJson, read_json, write_json
from headrace.client.serializers.codecs.processes import Matched
from headrace.gateway.rest.values import BySchema, cut, decode

MAX_HEADER_BYTES = 8 * 1024  # of one header's value
MAX_HEADERS = 1000  # of a message


def message_of(
    record: Record, most: int, by_schema: BySchema | None = None, *, raw: bool = False
) -> dict[str, Any]:
    """Return a record as JSON has it, with at most `most` bytes of its key and of its value.

    The encoding of key and value is `null`, `json`, `text` or `base64`, or with a schema `avro`, `jsonschema`
    or `protobuf`. `truncated` says whether something is cut.
    """
    key, key_cut = cut(record.key, most, by_schema, raw=raw)
    value, value_cut = cut(record.value, most, by_schema, raw=raw)
    assert record.partition is not None, record
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": key.value,
        "key_encoding": key.encoding,
        "key_schema_id": key.schema_id,
        "key_size": len(record.key or b""),
        "value": value.value,
        "value_encoding": value.encoding,
        "value_schema_id": value.schema_id,
        "value_size": len(record.value or b""),
        "truncated": key_cut or value_cut or len(record.headers) > MAX_HEADERS,
        "headers": [
            {"name": name, "value": decoded.value, "encoding": decoded.encoding}
            for name, data in record.headers[:MAX_HEADERS]
            for decoded, _ in [cut(data, MAX_HEADER_BYTES, raw=raw)]
        ],
    }


Match = Callable[[Sequence[Mapping[str, Any]]], Matched]
"""Returns for each message, by the variables of an expression, whether it matches."""


class RecordFilter:
    """Selects records that have this key, as text or as JSON, and this text in key, value or a header.

    With `match`, they also have to match an expression. If there are messages to which it cannot be applied,
    `filter_error` says why for the first.
    """

    def __init__(
        self,
        key: str | None,
        text: str | None,
        by_schema: BySchema | None = None,
        match: Match | None = None,
        numbers: BySchema | None = None,
    ) -> None:
        """`numbers` decodes for the expression, as `by_schema` does, but with numbers to compare."""
        self._key = key
        self._text = None if text is None else text.casefold()
        self._by_schema = by_schema
        self._match = match
        self._numbers = numbers or by_schema
        self.filter_error = ""

    def __call__(self, record: Record) -> bool:
        return self.select([record])[0]

    def select(self, records: Sequence[Record]) -> list[bool]:
        selected = [self._has_key(record.key) and self._has_text(record) for record in records]
        if self._match is None or not any(selected):
            return selected
        rest = [self._variables(each) for each, fits in zip(records, selected, strict=True) if fits]
        matched = self._match(rest)
        self.filter_error = self.filter_error or matched.reason
        matches = iter(matched.found)
        return [fits and next(matches) is True for fits in selected]

    def _variables(self, record: Record) -> dict[str, Any]:
        """Return a record as an expression sees it: JSON and what has a schema decoded, the rest as text."""
        return {
            "key": decode(record.key, self._numbers).value,
            "value": decode(record.value, self._numbers).value,
            "headers": {name: decode(data).value for name, data in record.headers[:MAX_HEADERS]},
            "partition": record.partition,
            "offset": record.offset,
            "timestamp_ms": record.timestamp_ms,
        }

    def _has_key(self, data: bytes | None) -> bool:
        if self._key is None:
            return True
        if not data:
            return data is not None and not self._key
        if data == self._key.encode("utf-8", "replace") or self._readable(data) == self._key:
            return True
        if not data.startswith(b'"'):
            return False
        try:
            return bool(read_json(data) == self._key)  # the REST proxy writes keys as JSON strings
        except NotJson:
            return False

    def _has_text(self, record: Record) -> bool:
        text = self._text
        if text is None:
            return True
        everything = [record.key, record.value, *(value for _, value in record.headers)]
        return any(text in self._readable(data).casefold() for data in everything if data) or any(
            text in name.casefold() for name, _ in record.headers
        )

    def _readable(self, data: bytes) -> str:
        if data[0] or self._by_schema is None:
            return data.decode("utf-8", "replace")
        decoded = decode(data, self._by_schema)
        if decoded.schema_id is None:
            return data.decode("utf-8", "replace")
        if isinstance(decoded.value, str):
            return decoded.value
        return write_json(decoded.value).decode()
