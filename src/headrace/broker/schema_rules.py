"""Whether records carry ids of schemas that their topic's subjects have. Pure.

The registry's wire format is a zero, four bytes of an id, and the data. A record of a validated topic whose
id is unknown, or is another subject's, is refused; a null is nothing, and passes.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from headrace.broker.settings import Value
from headrace.protocol.batch import read_batch
from headrace.protocol.compression import Buffer
from headrace.protocol.errors import InvalidRecord
from headrace.protocol.records import keys_and_values

KEY, VALUE = "confluent.key.schema.validation", "confluent.value.schema.validation"
MOST_NAMED: Final = 100  # bad records of a batch that the answer tells of
MOST_RECORDS: Final = 100_000  # of a batch that is looked at: a few bytes can unpack to millions
MOST_BYTES: Final = 32 * 1024 * 1024  # unpacked


class Rule(NamedTuple):
    """What a topic wants to have looked at."""

    keys: bool
    values: bool

    @classmethod
    def of(cls, values: Mapping[str, Value]) -> "Rule | None":
        """The rule among a topic's settings, if there is one."""
        rule = cls(bool(values[KEY]), bool(values[VALUE]))
        return rule if any(rule) else None


class Known(NamedTuple):
    """The ids of a topic's two subjects."""

    keys: Collection[int]
    values: Collection[int]


class WrongSchema(InvalidRecord):
    """Records whose schema is not one of the topic's; `records` are their places in the batch, and why."""

    def __init__(self, records: list[tuple[int, str]]) -> None:
        first, why = records[0]
        super().__init__(f"record {first} of the batch: {why}")
        self.records = records


def check(topic: str, rule: Rule, batch: Buffer, known: Known) -> None:
    """WrongSchema if a record of the batch does not belong into the topic; no batch is refused as well."""
    wrong = list(islice(_wrong(topic, rule, batch, known), MOST_NAMED))
    if wrong:
        raise WrongSchema(wrong)


def _wrong(topic: str, rule: Rule, batch: Buffer, known: Known) -> Iterator[tuple[int, str]]:
    view = memoryview(batch)
    header = read_batch(view)
    if header.records_count > MOST_RECORDS:
        raise InvalidRecord(
            f"{header.records_count:,} records in one batch, whose schemas are looked at: "
            f"{MOST_RECORDS:,} is the most"
        )
    for place, (key, value) in enumerate(keys_and_values(view, header, max_bytes=MOST_BYTES)):
        why = _why("key", f"{topic}-key", key, known.keys) if rule.keys else None
        if why is None and rule.values:
            why = _why("value", f"{topic}-value", value, known.values)
        if why is not None:
            yield place, why


def _why(what: str, subject: str, data: bytes | None, known: Collection[int]) -> str | None:
    if data is None:
        return None
    if len(data) < 5 or data[0] != 0:
        return f"its {what} names no schema: expected a zero byte, and an id of four bytes"
    schema_id = int.from_bytes(data[1:5], "big")
    if schema_id in known:
        return None
    return f"its {what} has schema {schema_id}, which is none of {subject}"
