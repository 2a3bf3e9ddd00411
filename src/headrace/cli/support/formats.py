r"""Print and read records as bytes: by a format such as `%k: %v\n`, or as a line of JSON."""

import json
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import IO, Any, Final, NamedTuple

import click

from headrace.client.records.one_by_one import Record
from headrace.client.schemas.records import Decoded

LONGEST: Final = 100 * 1024**2  # bytes of one record on standard input; no broker accepts more
_CHUNK: Final = 64 * 1024
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "e": b"\x1b", "\\": b"\\"}


class Shown(NamedTuple):
    """A record that was read, with its key and value as far as a schema has decoded them."""

    record: Record
    key: Decoded | None = None
    value: Decoded | None = None


class DecodedJson(NamedTuple):
    """A key or value in a line of JSON that a schema had decoded, and that a schema encodes."""

    value: Any
    message: str = ""  # the full name of a Protobuf message


Part = Callable[[Record], bytes]

FIELDS: Final[dict[str, Part]] = {
    "k": lambda record: record.key or b"",
    "v": lambda record: record.value or b"",
    "s": lambda record: record.value or b"",  # kcat's letter for the value
    "K": lambda record: b"%d" % (-1 if record.key is None else len(record.key)),
    "S": lambda record: b"%d" % (-1 if record.value is None else len(record.value)),
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % (record.partition or 0),
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"-" if record.timestamp_ms is None else _iso(record.timestamp_ms),
    "m": lambda record: b"%d" % (-1 if record.timestamp_ms is None else record.timestamp_ms),
    "h": lambda record: b",".join(b"%s=%s" % (name.encode(), value or b"") for name, value in record.headers),
    "%": lambda _record: b"%",
}


def _iso(time_ms: int) -> bytes:
    """Return a time as 2026-01-31T12:00:00.000Z, or as milliseconds if the calendar ends before it."""
    try:
        time = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return b"@%d" % time_ms
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()


class BadInput(click.ClickException):
    """A line, a record or a file that was read does not have the expected form."""


def unescape(text: str) -> bytes:
    r"""Return the bytes of `text`; the escapes `\n`, `\t`, `\0`, `\\`, `\xff` are one byte each."""
    done, position = bytearray(), 0
    while position < len(text):
        character = text[position]
        follower = text[position + 1 : position + 2]
        if character == "\\" and follower == "x":
            digits = text[position + 2 : position + 4]
            try:
                done += bytes.fromhex(digits)
            except ValueError:
                raise click.UsageError(f"\\x{digits}: expected two hexadecimal digits.") from None
            position += 4
        elif character == "\\" and follower in _ESCAPES:
            done += _ESCAPES[follower]
            position += 2
        else:
            done += character.encode("utf-8", "surrogateescape")
            position += 1
    return bytes(done)


def format_shown(part: Part) -> Callable[[Shown], bytes]:
    """Return a function that formats a record with what was decoded of it, as JSON, in place of its bytes."""

    def show(shown: Shown) -> bytes:
        record, key, value = shown
        if key is not None:
            record = replace(record, key=_compact(key.value))
        if value is not None:
            record = replace(record, value=_compact(value.value))
        return part(record)

    return show


def _compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def compile_format(text: str) -> Part:
    r"""Return a function that formats a record: `%k %v %p %o %t %T %m %h`, escapes such as `\n`."""
    parts: list[Part | bytes] = []
    for token in re.findall(r"%.?|[^%]+", text, re.DOTALL):
        if not token.startswith("%"):
            parts.append(unescape(token))
        elif token[1:] in FIELDS:
            parts.append(FIELDS[token[1:]])
        else:
            raise click.UsageError(f"{token}: expected one of {' '.join('%' + name for name in FIELDS)}.")
    return lambda record: b"".join(part if isinstance(part, bytes) else part(record) for part in parts)


def to_json(shown: Shown) -> bytes:
    """Return one line of JSON; bytes that are not UTF-8 become {"base64": …}.

    A key or value that a schema has decoded is JSON, and the line has the id of the schema and the name of a
    Protobuf message.
    """
    record, key, value = shown
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "key": _show(record.key) if key is None else key.value,
        "value": _show(record.value) if value is None else value.value,
        "headers": [[name, _show(value)] for name, value in record.headers],
    }
    for part, each in (("key", key), ("value", value)):
        if each is not None:
            fields[f"{part}_schema_id"] = each.schema_id
        if each is not None and each.message:
            fields[f"{part}_message"] = each.message
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def from_json(line: bytes, number: int) -> Record:
    """Return key, value, headers and timestamp of a record that `to_json` printed, undecoded."""
    record, decoded = parse_json(line, number)
    if decoded:
        raise BadInput(f"line {number} was decoded by a schema: print records with `consume --json --raw`")
    return record


def parse_json(line: bytes, number: int) -> tuple[Record, dict[str, DecodedJson]]:
    """Return key, value, headers and timestamp of a record that `to_json` printed.

    Also return the key and the value that are JSON, because a schema had decoded them, by "key" and "value".
    """
    try:
        fields = json.loads(line)
        decoded = {
            part: DecodedJson(fields[part], str(fields.get(f"{part}_message", "")))
            for part in ("key", "value")
            if f"{part}_schema_id" in fields
        }
        record = Record(
            value=None if "value" in decoded else _read(fields["value"]),
            key=None if "key" in decoded else _read(fields.get("key")),
            headers=[(str(name), _read(value)) for name, value in fields.get("headers", [])],
            timestamp_ms=fields.get("timestamp"),
        )
        if type(record.timestamp_ms) not in {int, NoneType}:
            raise TypeError(record.timestamp_ms)  # noqa: TRY301  as the other fields of a wrong type
    except (ValueError, KeyError, TypeError, AttributeError, Base64Error, RecursionError):
        raise BadInput(
            f'line {number}: expected an object such as {{"key": "k", "value": "v", "headers": [["h", "1"]]}}'
        ) from None
    else:
        return record, decoded


def _show(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def _read(value: Any) -> bytes | None:
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    return b64decode(value["base64"], validate=True)


def split(stream: IO[bytes], delimiter: bytes) -> Iterator[bytes]:
    """Yield the pieces between delimiters as soon as they arrive; the last piece needs no delimiter."""
    read = getattr(stream, "read1", stream.read)
    pending = bytearray()
    while chunk := read(_CHUNK):
        searched = max(0, len(pending) - len(delimiter))
        pending += chunk
        if pending.find(delimiter, searched) >= 0:
            *whole, rest = pending.split(delimiter)
            yield from map(bytes, whole)
            pending = bytearray(rest)
        if len(pending) > LONGEST:
            raise BadInput(f"a record has more than {LONGEST:,} bytes; is the delimiter right?")
    if pending:
        yield bytes(pending)
