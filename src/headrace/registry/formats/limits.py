"""How much of a schema we look at. Whatever is beyond is refused in a sentence, not tried."""

MAX_TEXT_BYTES = 1 << 20  # of one schema
MAX_DEPTH = 128  # brackets within brackets; Avro needs three for a record in a record
MAX_REFERENCES = 500  # of a schema, with what those refer to
MAX_TOTAL_BYTES = 8 << 20  # of a schema and everything that it refers to
MAX_EXPANSION = 100_000  # schemas that one value is asked about, with all that they refer to
MAX_COMPARISONS = 50_000  # pairs of types looked at to compare two schemas; a large pair counts as several
PARTS_OF_ONE = 20  # values, names or fields that count as one more comparison
MAX_PATH = 2000  # characters of the path in a message
MAX_MESSAGES = 50  # told about a schema that does not fit
