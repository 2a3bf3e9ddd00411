"""The reader of each schema format; these modules need the packages of the extra `http`."""

from headrace.reader.errors import ReadError
from headrace.reader.registry.avro_reader import AvroReader
from headrace.reader.registry.json_reader import JsonReader
from headrace.reader.registry.protobuf_reader import ProtobufReader
from headrace.reader.registry.reader import Reader
from headrace.registry.formats import Parsed
from headrace.registry.formats.avro import AvroSchema
from headrace.registry.formats.json_schema import JsonSchema
from headrace.registry.formats.protobuf import ProtobufSchema


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
