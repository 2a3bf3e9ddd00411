"""Records of `consume` and `produce` by the schemas of the registry.

The registry is looked for when the first record needs it: a topic without schemas costs no request.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import click

from headrace.cli.support.formats import BadInput, DecodedJson, Shown
from headrace.cli.support.registry import schemas_of_records
from headrace.cli.support.session import Session
from headrace.client.errors import ClientError, Unreachable
from headrace.client.records.one_by_one import Record
from headrace.client.schemas.records import Decoded, NotDecodable, NotEncodable, RecordSchemas
from headrace.client.serializers.codecs.plain_json import NotJson, read_json
from headrace.registry.schema_ids import HEADERS
from headrace.system.extras import SERIALIZERS, MissingExtra

RAW: Final = "--raw writes bytes as they are"
_MAGIC: Final = (b"\0", b"\1")  # before the id, or the fingerprint, of a schema
_SHORTEST: Final = 6  # bytes: the magic byte, an id, and one byte of data

Find = Callable[[Session], RecordSchemas | None]


class MissingLibrary(ClientError):
    """A library of the schema formats is not installed."""


@contextmanager
def _libraries() -> Iterator[None]:
    """Turn the ImportError of a schema format's library into a sentence."""
    try:
        yield
    except ImportError as error:
        raise MissingLibrary(str(MissingExtra("a record with a schema", SERIALIZERS))) from error


class Decoding:
    """Decodes the records of `consume`; what cannot be decoded stays as it is, with one warning in all."""

    def __init__(
        self, session: Session, warn: Callable[[str], None], find: Find = schemas_of_records
    ) -> None:
        self._session = session
        self._warn: Callable[[str], None] | None = warn
        self._find: Find | None = find  # None after it was called
        self._schemas: RecordSchemas | None = None

    def __call__(self, record: Record) -> Shown:
        """Return the record with its key and value decoded as far as possible."""
        return Shown(record, self._decoded("key", record), self._decoded("value", record))

    def _decoded(self, part: str, record: Record) -> Decoded | None:
        data = record.key if part == "key" else record.value
        if data is None or not (
            (data.startswith(_MAGIC) and len(data) >= _SHORTEST)
            or any(name == HEADERS[part].decode() for name, _ in record.headers)
        ):
            return None
        try:
            with _libraries():
                if self._find is not None:
                    find, self._find = self._find, None
                    self._schemas = find(self._session)
                return None if self._schemas is None else self._schemas.decode(part, data, record.headers)
        except NotDecodable as error:
            self._say(f"the {part} of {record.topic}-{record.partition} offset {record.offset}: {error}")
        except ClientError as error:
            self._schemas = None  # not asked again: each attempt could take seconds
            self._say(str(error))
        return None

    def _say(self, why: str) -> None:
        if self._warn is not None:
            self._warn(f"{why}; bytes that cannot be decoded are shown as they are (--raw does not decode)")
            self._warn = None


def warn(sentence: str) -> None:
    """Print a warning on stderr."""
    click.echo(f"headrace: {' '.join(sentence.split())}", err=True)


class Encoding:
    """Encodes the records of `produce` for topics whose subject has a schema."""

    def __init__(self, session: Session, topic: str, find: Find = schemas_of_records) -> None:
        self._topic = topic
        self._schemas = find(session)

    @property
    def encodes(self) -> bool:
        """Whether keys or values have a schema; ClientError if the registry does not answer."""
        return self._has("key") or self._has("value")

    def __call__(self, record: Record, number: int, given: dict[str, DecodedJson] | None = None) -> Record:
        """Return the record with its key and value encoded; BadInput names the record and the field.

        `given` has values that are JSON already, by "key" and "value".
        """
        values = given or {}
        for part in ("key", "value"):
            data = record.key if part == "key" else record.value
            if self._has(part) and (data is not None or part in values):
                value = values[part] if part in values else _json_of(data or b"", part, number)
                encoded = None if value is None else self._encoded(part, value, number)
                record = replace(record, key=encoded) if part == "key" else replace(record, value=encoded)
                # Encoded data begins with its schema id, and so it needs no header that names a schema.
                headers = [header for header in record.headers if header[0] != HEADERS[part].decode()]
                record = replace(record, headers=headers)
            elif part in values:
                raise no_subject(self._topic, part, number)
        return record

    def _has(self, part: str) -> bool:
        if self._schemas is None:
            return False
        with _libraries():
            try:
                return self._schemas.has_subject(f"{self._topic}-{part}")
            except Unreachable as error:
                raise Unreachable(f"{error}; {RAW}") from error

    def _encoded(self, part: str, given: DecodedJson, number: int) -> bytes:
        assert self._schemas is not None
        with _libraries():
            try:
                return self._schemas.encode(f"{self._topic}-{part}", *given)
            except NotEncodable as error:
                raise BadInput(f"record {number}, {part}: {error}; {RAW}") from None


def no_subject(topic: str, part: str, number: int) -> BadInput:
    """Return the error for JSON that a schema had decoded, and that no schema can encode."""
    return BadInput(
        f"record {number}: its {part} was decoded by a schema, and there is no subject {topic}-{part}: "
        "register its schema, or copy records with `consume --json --raw`"
    )


def _json_of(data: bytes, part: str, number: int) -> DecodedJson | None:
    """Return the JSON in a line; None for null, which deletes.

    Text that is not JSON is a string if it looks like one word.
    """
    try:
        value = read_json(data)
    except (NotJson, UnicodeDecodeError) as error:
        value = data.decode("utf-8", "replace").strip()
        if not value or value[0] in '{["' or not value.isprintable():
            raise BadInput(f"record {number}, {part}: this is not JSON: {error}; {RAW}") from None
    return None if value is None else DecodedJson(value)
