"""Avro, JSON Schema and Protobuf by a schema registry, in Confluent's wire format.

Producer("127.0.0.1:9092", value=Avro(SCHEMA), registry="http://127.0.0.1:8080")
Consumer("127.0.0.1:9092", "orders", value=Avro(), registry="http://127.0.0.1:8080")

confluent_kafka's serialisers are used. A producer registers a new schema under TOPIC-value or TOPIC-key;
`settings` has `use.latest.version` and the like. A consumer needs no schema, as each record has the id of its
schema. With a schema, records are converted to it by the rules of schema evolution.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from confluent_kafka.serialization import MessageField, SerializationContext

from headrace.client.errors import BadSetting, NotSerializable
from headrace.client.serializers.codecs.base import dotted
from headrace.client.serializers.formats import Field, Headers
from headrace.client.serializers.registry_errors import raise_if_unreachable
from headrace.system.extras import SERIALIZERS, require

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient


def schema_text(
    schema: "str | Mapping[str, Any] | list[Any] | Schema | None", name: str
) -> "str | Schema | None":
    """Return the schema as text, for the format of this name; BadSetting if it is not JSON."""
    if isinstance(schema, Mapping | list):
        return json.dumps(schema)
    if schema is None or hasattr(schema, "schema_str"):
        return schema
    if not isinstance(schema, str):
        raise BadSetting(f"the schema for {name} is JSON, as text or as a dict, not {schema!r:.80}")
    if schema.isidentifier():  # a type's name
        return json.dumps(schema)
    try:
        json.loads(schema)
    except ValueError as error:
        raise BadSetting(f"the schema for {name} is not JSON: {error}: {schema.strip()!r:.80}") from error
    return schema


def avro_schema(schema: "str | Mapping[str, Any] | list[Any] | Schema | None") -> "str | Schema | None":
    """The same; BadSetting if it is not Avro. Objects, which may refer to others, are the registry's."""
    text = schema_text(schema, "Avro")
    if isinstance(text, str):
        _check(json.loads(text))
    return text


def _check(schema: Any) -> None:
    from fastavro.schema import SchemaParseException, UnknownType, parse_schema  # noqa: PLC0415  only for Avro

    try:
        parse_schema(schema)
    except UnknownType as error:
        unknown = error.name
        if isinstance(unknown, Mapping):  # the type of this one is unknown
            unknown = unknown.get("type", unknown)
        raise BadSetting(f"the Avro schema has an unknown type: {unknown}") from error
    except (SchemaParseException, KeyError, TypeError, ValueError) as error:
        raise BadSetting(f"the Avro schema is invalid: {type(error).__name__}: {error}") from error


T = TypeVar("T")

_CONTEXTS: Final = {"key": MessageField.KEY, "value": MessageField.VALUE}


class RegistryFormat(ABC, Generic[T]):
    """The base of Avro, JsonSchema and Protobuf: a registry, and two directions, created on first use."""

    blocking: Final = True  # it may send a request to the registry: not in an event loop

    def __init__(self, registry: object = None, settings: Mapping[str, Any] | None = None) -> None:
        require(SERIALIZERS, type(self).__name__)
        self._registry = registry
        self._made: SchemaRegistryClient | None = None  # created for an address, and closed by us
        self._lock = Lock()  # so that two threads do not create two clients
        self._settings = dict(settings or {})
        self.adds_headers = "schema.id.serializer" in self._settings
        self._write: Callable[..., bytes | None] | None = None
        self._read: Callable[..., T] | None = None

    def connect(self, registry: object) -> "RegistryFormat[T]":
        """Use this registry, unless the format was made with one of its own."""
        if self._registry is None:
            self._registry = registry
        if self._registry is None:
            raise BadSetting(
                f"{type(self).__name__} needs a schema registry: give registry='http://HOST:PORT' "
                "to it, or to the producer or consumer"
            )
        return self

    def close(self) -> None:
        """Close our connection to the registry, if any; the next use creates another."""
        with self._lock:
            made, self._made, self._write, self._read = self._made, None, None, None
        if made is not None:
            made.__exit__(None, None, None)

    def serialize(self, value: T, topic: str, field: Field, headers: Headers | None) -> bytes | None:
        """Return the magic byte, the schema id and the value; Unreachable if the registry does not answer.

        NotSerializable names the field that is missing, if one is; other errors are those of the serialiser.
        """
        try:
            write = self._write
            if write is None:
                with self._lock:
                    self._write = write = self._write or self._writer(self._client())
            return write(value, SerializationContext(topic, _CONTEXTS[field], headers))
        except Exception as error:
            raise_if_unreachable(error, self._registry)
            why = self._unfit(value, error)
            if why is not None:
                raise NotSerializable(topic, field, why) from error
            raise

    def deserialize(self, data: bytes, topic: str, field: Field, headers: Headers | None) -> T:
        """Return the value, by the schema of its id; Unreachable if the registry does not answer."""
        try:
            read = self._read
            if read is None:
                with self._lock:
                    self._read = read = self._read or self._reader(self._client())
            return read(data, SerializationContext(topic, _CONTEXTS[field], headers))
        except Exception as error:
            raise_if_unreachable(error, self._registry)
            raise

    def _client(self) -> "SchemaRegistryClient":
        self.connect(None)
        if self._made is not None:
            return self._made
        client = client_of(self._registry)
        if client is not self._registry:
            self._made = client
        return client

    @abstractmethod
    def _writer(self, client: "SchemaRegistryClient") -> Callable[..., bytes | None]: ...

    @abstractmethod
    def _reader(self, client: "SchemaRegistryClient") -> Callable[..., T]: ...

    @abstractmethod
    def _unfit(self, value: T, error: Exception) -> str | None:
        """Return which field of the value does not fit the schema; None if that is not known."""


class Avro(RegistryFormat[Any]):
    """Avro; the schema is JSON, as text or as a dict. Records are dicts."""

    def __init__(
        self,
        schema: "str | Mapping[str, Any] | list[Any] | Schema | None" = None,
        registry: object = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(registry, settings)
        self._schema = avro_schema(schema)

    def _writer(self, client: "SchemaRegistryClient") -> Callable[..., bytes | None]:
        from confluent_kafka.schema_registry.avro import AvroSerializer  # noqa: PLC0415  a fifth of a second

        return AvroSerializer(client, _needed(self._schema, "Avro"), conf=self._settings or None)  # type: ignore[no-any-return]

    def _reader(self, client: "SchemaRegistryClient") -> Callable[..., Any]:
        from confluent_kafka.schema_registry.avro import AvroDeserializer  # noqa: PLC0415

        return AvroDeserializer(client, self._schema)  # type: ignore[no-any-return]

    def _unfit(self, value: Any, error: Exception) -> str | None:
        del error  # it names the field without its path
        # With these settings the registry's schema decides, which may be another than ours.
        if not isinstance(self._schema, str) or any(name.startswith("use.") for name in self._settings):
            return None
        from fastavro.schema import parse_schema  # noqa: PLC0415  only for Avro

        from headrace.client.serializers.codecs.avro_json import AvroJson  # noqa: PLC0415
        from headrace.client.serializers.codecs.avro_leaves import Misfit  # noqa: PLC0415

        try:
            AvroJson(parse_schema(json.loads(self._schema)), read_leaf=lambda leaf, *_: leaf).read(value)
        except Misfit as misfit:
            return str(misfit) if misfit.is_missing else None
        return None


class JsonSchema(RegistryFormat[Any]):
    """JSON that is validated against its schema, when it is written and when it is read."""

    def __init__(
        self,
        schema: "str | Mapping[str, Any] | Schema | None" = None,
        registry: object = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(registry, settings)
        self._schema = schema_text(schema, "JsonSchema")

    def _writer(self, client: "SchemaRegistryClient") -> Callable[..., bytes | None]:
        from confluent_kafka.schema_registry.json_schema import JSONSerializer  # noqa: PLC0415

        return JSONSerializer(_needed(self._schema, "JsonSchema"), client, conf=self._settings or None)  # type: ignore[no-any-return]

    def _reader(self, client: "SchemaRegistryClient") -> Callable[..., Any]:
        from confluent_kafka.schema_registry.json_schema import JSONDeserializer  # noqa: PLC0415

        return JSONDeserializer(self._schema, schema_registry_client=client)  # type: ignore[no-any-return]

    def _unfit(self, value: Any, error: Exception) -> str | None:
        from jsonschema import ValidationError  # type: ignore[import-untyped]  # noqa: PLC0415

        del value  # the validator's error has a path
        invalid = error if isinstance(error, ValidationError) else error.__cause__ or error.__context__
        if not isinstance(invalid, ValidationError):
            return None
        path = list(invalid.absolute_path)
        # In draft 3, `required` is a boolean.
        if invalid.validator == "required" and isinstance(invalid.validator_value, list):
            missing = next(name for name in invalid.validator_value if name not in invalid.instance)
            return f"the field {dotted([*path, missing])} is missing"
        return f"the field {dotted(path)}: {invalid.message}" if path else None


class Protobuf(RegistryFormat[T]):
    """Protobuf, by a class that protoc has generated; records are its objects."""

    def __init__(
        self, message: type[T], registry: object = None, settings: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(registry, settings)
        self._message = message

    def _writer(self, client: "SchemaRegistryClient") -> Callable[..., bytes | None]:
        from confluent_kafka.schema_registry.protobuf import ProtobufSerializer  # noqa: PLC0415

        settings = {"use.deprecated.format": False} | self._settings
        return ProtobufSerializer(self._message, client, conf=settings)  # type: ignore[no-any-return]

    def _reader(self, client: "SchemaRegistryClient") -> Callable[..., T]:
        from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer  # noqa: PLC0415

        settings = {"use.deprecated.format": False}
        return ProtobufDeserializer(self._message, settings, client)  # type: ignore[no-any-return]

    def _unfit(self, value: T, error: Exception) -> str | None:
        del error  # it may be a failure of another kind
        find = getattr(value, "FindInitializationErrors", None)  # required fields, of proto2
        missing: list[str] = [] if find is None else find()
        return f"the field {missing[0]} is missing" if missing else None


def client_of(registry: object) -> "SchemaRegistryClient":
    """Return a client for an address or for confluent_kafka's settings; a client is returned as it is."""
    from confluent_kafka.schema_registry import SchemaRegistryClient  # noqa: PLC0415

    if isinstance(registry, str):
        registry = {"url": registry}
    if not isinstance(registry, Mapping):
        return registry
    try:
        return SchemaRegistryClient.new_client(dict(registry))
    except (TypeError, ValueError) as error:
        raise BadSetting(f"the schema registry: {error}") from error


def _needed(schema: T | None, name: str) -> T:
    if schema is None:
        raise BadSetting(f"{name} needs a schema for writing: {name}(SCHEMA)")
    return schema
