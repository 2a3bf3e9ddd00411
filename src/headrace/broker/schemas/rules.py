"""Validation of the schemas of a batch's records. Pure; `registry.validation` checks a single record."""

from collections.abc import Iterator
from typing import Final

from headrace.protocol.batch import read_batch
from headrace.protocol.compression import Buffer
from headrace.protocol.errors import InvalidRecord, InvalidRecords
from headrace.protocol.record_walk import MAX_NAMED
from headrace.protocol.records import with_headers
from headrace.registry.schema_ids import HEADERS
from headrace.registry.validation import KnownSchemas, Record, Rule, invalid_records

MOST_NAMED: Final = MAX_NAMED  # invalid records of a batch that the response lists
MOST_RECORDS: Final = 100_000  # of a batch: a few bytes can decompress to millions of records
MOST_BYTES: Final = 32 * 1024 * 1024  # decompressed


class WrongSchema(InvalidRecords):
    """Records of the batch have no schema id, or one that is not registered for the topic."""


def check(topic: str, rule: Rule, batch: Buffer, known: KnownSchemas) -> None:
    """Raise WrongSchema if a record of the batch has an invalid schema, and KafkaError for an invalid batch.

    Raise NotLookedUp if the result depends on schemas that are not in `known`; it names all of them.
    """
    found = invalid_records(topic, rule, _records(batch), known, MOST_NAMED)
    if found:
        raise WrongSchema(found)


def _records(batch: Buffer) -> Iterator[Record]:
    view = memoryview(batch)
    header = read_batch(view)
    if header.records_count > MOST_RECORDS:
        raise InvalidRecord(
            f"the batch has {header.records_count:,} records; "
            f"schema validation accepts at most {MOST_RECORDS:,} (INVALID_RECORD)"
        )
    return with_headers(view, header, HEADERS.values(), max_bytes=MOST_BYTES)
