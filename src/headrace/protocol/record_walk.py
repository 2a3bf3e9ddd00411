"""Validation of every record of a decompressed batch in one pass, about a microsecond each.

The pass is one long function that decodes varints inline: calls would make it four times slower, and its
cost is what a malicious batch can cost a broker.
"""

from dataclasses import dataclass, field
from typing import Final

from headrace.protocol.batch import NO_TIMESTAMP, BatchHeader
from headrace.protocol.compression import Buffer
from headrace.protocol.errors import InvalidRecord
from headrace.protocol.records import SMALLEST_RECORD
from headrace.protocol.varint import read_varint

MAX_NAMED: Final = 10_000  # invalid records of a batch that an error lists; the others are counted


@dataclass(slots=True)
class Walked:
    """The result of a pass over the records; its lists hold at most MAX_NAMED."""

    index: int = 0  # of the record that was read last
    max_timestamp: int = NO_TIMESTAMP
    without_key: list[int] = field(default_factory=list)  # batch indexes
    without_key_count: int = 0
    out_of_range: list[tuple[int, int]] = field(default_factory=list)  # batch index and timestamp
    out_of_range_count: int = 0


class TooManyHeaders(InvalidRecord):
    """The records of a batch have more headers than the caller allows."""


def walk_records(
    body: Buffer,
    header: BatchHeader,
    *,
    max_headers: int,
    earliest: int = -(2**63),
    latest: int = 2**63 - 1,
    utf8_names: bool = False,
) -> Walked:
    """Check each record of `body`, the decompressed part of the batch with this `header`.

    InvalidRecord names the first malformed record: sizes that do not add up, an offset delta other
    than its index in the batch, a header without a key. Records without a key, and those with a timestamp
    before `earliest` or after `latest`, are well formed and are listed in the result.
    """
    data = body if isinstance(body, bytes | bytearray) else bytes(body)  # faster to index than a memoryview
    walked = Walked()
    try:
        end = _walk(data, header, walked, max_headers, earliest, latest, utf8_names)
    except TooManyHeaders:
        raise
    except IndexError:
        raise _malformed(walked.index, "the batch ends inside the record") from None
    except UnicodeDecodeError:
        raise _malformed(walked.index, "a header's key is not UTF-8") from None
    except InvalidRecord as error:
        raise _malformed(walked.index, str(error)) from None
    if end != len(data):
        raise InvalidRecord(f"{len(data) - end} bytes follow the last of {header.records_count} records")
    if walked.max_timestamp >= 2**63:
        raise InvalidRecord(f"the largest timestamp is {walked.max_timestamp}, which 64 bits cannot hold")
    return walked


def _malformed(index: int, why: str) -> InvalidRecord:
    return InvalidRecord(f"record {index} of the batch is malformed: {why}", [(index, why)])


def _walk(  # noqa: C901, PLR0912, PLR0915, PLR0917  see the head of the file
    data: bytes | bytearray,
    header: BatchHeader,
    walked: Walked,
    max_headers: int,
    earliest: int,
    latest: int,
    utf8_names: bool,
) -> int:
    """Read all records, note findings in `walked`, and return the end of the last record."""
    total, base_timestamp = len(data), header.base_timestamp
    at = headers = 0
    max_timestamp = NO_TIMESTAMP
    for index in range(header.records_count):
        walked.index = index
        number = data[at]
        if number < 0x80:
            size, at = (number >> 1) ^ -(number & 1), at + 1
        else:
            size, at = read_varint(data, at)
        end = at + size
        if size < SMALLEST_RECORD or end > total:
            raise InvalidRecord(f"its size is {size} bytes, the batch has {total - at} left")
        number = data[at + 1]  # the byte before it is the record's attributes, which have no meaning yet
        if number < 0x80:
            delta, at = (number >> 1) ^ -(number & 1), at + 2
        else:
            delta, at = read_varint(data, at + 1)
        timestamp = base_timestamp + delta
        if timestamp > max_timestamp:  # noqa: PLR1730  max() takes three times as long
            max_timestamp = timestamp
        if not earliest <= timestamp <= latest and timestamp != NO_TIMESTAMP:
            walked.out_of_range_count += 1
            if walked.out_of_range_count <= MAX_NAMED:
                walked.out_of_range.append((index, timestamp))
        number = data[at]
        if number < 0x80:
            delta, at = (number >> 1) ^ -(number & 1), at + 1
        else:
            delta, at = read_varint(data, at)
        if delta != index:
            raise InvalidRecord(f"its offset delta is {delta}, expected {index}")
        number = data[at]
        if number < 0x80:
            size, at = (number >> 1) ^ -(number & 1), at + 1
        else:
            size, at = read_varint(data, at)
        if size >= 0:
            at += size
        elif size == -1:
            walked.without_key_count += 1
            if walked.without_key_count <= MAX_NAMED:
                walked.without_key.append(index)
        else:
            raise InvalidRecord(f"its key has length {size}")
        if at >= end:
            raise InvalidRecord("its key reaches past its end")
        number = data[at]
        if number < 0x80:
            size, at = (number >> 1) ^ -(number & 1), at + 1
        else:
            size, at = read_varint(data, at)
        if size >= 0:
            at += size
        elif size != -1:
            raise InvalidRecord(f"its value has length {size}")
        if at >= end:
            raise InvalidRecord("its value reaches past its end")
        if data[at] == 0 and at + 1 == end:  # most records have no headers
            at = end
            continue
        count, at = read_varint(data, at)
        if not 0 <= count <= (end - at) // 2:
            raise InvalidRecord(f"it has {count} headers in {end - at} bytes")
        headers += count
        if headers > max_headers:
            raise TooManyHeaders(f"the batch has more than {max_headers:,} record headers")
        for _ in range(count):
            number = data[at]
            if number < 0x80:
                size, at = (number >> 1) ^ -(number & 1), at + 1
            else:
                size, at = read_varint(data, at)
            if size < 0:
                raise InvalidRecord(f"a header has a key of length {size}")
            if utf8_names and size:
                data[at : at + size].decode()
            at += size
            if at >= end:
                raise InvalidRecord("a header's key reaches past its end")
            number = data[at]
            if number < 0x80:
                size, at = (number >> 1) ^ -(number & 1), at + 1
            else:
                size, at = read_varint(data, at)
            if size >= 0:
                at += size
            elif size != -1:
                raise InvalidRecord(f"a header has a value of length {size}")
            if at > end:
                raise InvalidRecord("a header's value reaches past its end")
        if at != end:
            raise InvalidRecord(f"{end - at} bytes follow its last header")
    walked.max_timestamp = max_timestamp
    return at
