"""Batches of topics that have a rule about schemas: whether a record of one is to be refused. Pure.

What is wrong with a record, `registry.judging` tells.
"""

from collections.abc import Iterator
from typing import Final

from headrace.protocol.batch import read_batch
from headrace.protocol.compression import Buffer
from headrace.protocol.errors import InvalidRecord, InvalidRecords
from headrace.protocol.record_walk import MAX_NAMED
from headrace.protocol.records import with_headers
from headrace.registry.schema_ids import HEADERS
from headrace.registry.validation import KnownSchemas, Record, Rule, invalid_records

MOST_NAMED: Final = MAX_NAMED  # bad records of a batch that the answer tells of
MOST_RECORDS: Final = 100_000  # of a batch that is looked at: a few bytes can unpack to millions
MOST_BYTES: Final = 32 * 1024 * 1024  # unpacked


class WrongSchema(InvalidRecords):
    """Records whose schema is not one of the topic's."""


def check(topic: str, rule: Rule, batch: Buffer, known: KnownSchemas) -> None:
    """WrongSchema if a record of the batch does not belong into the topic; no batch is refused as well.

    NotLookedUp if that goes by schemas that `known` has nothing about. Once it has, there will be no others.
    """
    found = invalid_records(topic, rule, _records(batch), known, MOST_NAMED)
    if found:
        raise WrongSchema(found)


def _records(batch: Buffer) -> Iterator[Record]:
    view = memoryview(batch)
    header = read_batch(view)
    if header.records_count > MOST_RECORDS:
        raise InvalidRecord(
            f"{header.records_count:,} records in one batch, whose schemas are looked at: "
            f"{MOST_RECORDS:,} is the most"
        )
    return with_headers(view, header, HEADERS.values(), max_bytes=MOST_BYTES)
