"""Topics as Arrow tables, without Spark: `read` what is there, `stream` what arrives.

    import headrace.arrow

    table = headrace.arrow.read("orders", "127.0.0.1:9092").read_all()
    for batch in headrace.arrow.stream("orders", "127.0.0.1:9092", start="earliest"):
        ...

The columns are key, value, topic, partition, offset, timestamp, timestampType and headers, with the types of
Spark's Kafka source. `schema` decodes keys and values. It needs `pip install 'headrace[arrow]'`.
"""

try:
    import numba  # noqa: F401  the reader is compiled
    import pyarrow as pa  # noqa: F401
except ImportError as missing:
    raise ImportError(
        f"headrace.arrow needs {missing.name}: pip install 'headrace[arrow]'", name=missing.name
    ) from missing

from headrace.tables.arrow.bounds import Bound
from headrace.tables.arrow.decoding import NewerSchemaWarning, Registry
from headrace.tables.arrow.reading import read, stream
from headrace.tables.reader.errors import DataLoss, ReadError

__all__ = ["Bound", "DataLoss", "NewerSchemaWarning", "ReadError", "Registry", "read", "stream"]
