"""From a schema to what reads with it, by its format."""

from headrace.pipeline.errors import PipelineError
from headrace.pipeline.registry.avro_reader import AvroReading
from headrace.pipeline.registry.json_reader import JsonReading
from headrace.pipeline.registry.protobuf_reader import ProtobufReading
from headrace.pipeline.registry.reader import Reading
from headrace.pipeline.registry.whole import Whole
from headrace.registry.formats import InvalidSchema
from headrace.registry.formats.avro import AvroSchema
from headrace.registry.formats.json_schema import JsonSchema
from headrace.registry.formats.protobuf import ProtobufSchema


def reading(schema: Whole, message: str | None = None) -> Reading:
    """What reads records as ones of this schema; PipelineError if it cannot be understood."""
    try:
        parsed = schema.parsed()
    except InvalidSchema as error:
        raise PipelineError(f"the schema cannot be understood: {error}") from error
    if message is not None and not isinstance(parsed, ProtobufSchema):
        raise PipelineError(f"the schema is {parsed.type}: only those of Protobuf have several messages")
    match parsed:
        case AvroSchema():
            return AvroReading(parsed)
        case JsonSchema():
            return JsonReading(parsed)
        case ProtobufSchema():
            return ProtobufReading(parsed, message)
    raise AssertionError(parsed)
