"""The limits of schemas. A schema that exceeds one of them is refused."""

MAX_TEXT_BYTES = 1 << 20  # of one schema
MAX_DEPTH = 128  # nested brackets; Avro needs three for a record in a record
MAX_REFERENCES = 500  # of a schema, including indirect ones
MAX_TOTAL_BYTES = 8 << 20  # of a schema and everything that it refers to
MAX_EXPANSION = 100_000  # JSON schemas that one value is validated by, with every $ref expanded
MAX_COMPARISONS = 50_000  # pairs of types in a comparison of two schemas; a large pair counts as several
PARTS_PER_COMPARISON = 20  # values, names or fields of a pair that count as one more comparison
MAX_PATH = 2000  # characters of the path in a message
MAX_MESSAGES = 50  # about an incompatible schema
