"""The reader of each schema format; these modules need the packages of the extra `http`."""

from headrace.registry.formats import Parsed
from headrace.registry.formats.avro.avro import AvroSchema
from headrace.registry.formats.json.schema import JsonSchema
from headrace.registry.formats.protobuf.protobuf import ProtobufSchema
from headrace.tables.reader.errors import ReadError
from headrace.tables.registry.avro_reader import AvroReader
from headrace.tables.registry.json_reader import JsonReader
from headrace.tables.registry.protobuf_reader import ProtobufReader
from headrace.tables.registry.reader import Reader


def reader_of_parsed(parsed: Parsed, message: str | None) -> Reader:
    """Return the reader of a parsed schema; `message` names one of a Protobuf schema."""
    if message is not None and not isinstance(parsed, ProtobufSchema):
        raise ReadError(f"the schema is {parsed.type}: only a Protobuf schema has several messages")
    match parsed:
        case AvroSchema():
            return AvroReader(parsed)
        case JsonSchema():
            return JsonReader(parsed)
        case ProtobufSchema():
            return ProtobufReader(parsed, message)
    raise AssertionError(parsed)
