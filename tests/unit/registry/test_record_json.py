"""Records of `_schemas`, byte by byte as other registries write and read them."""

import pytest

from headrace.registry.formats import Level, Reference, Schema, SchemaType
from headrace.registry.record_json import BadRecord, decode, encode_key, encode_value
from headrace.registry.records import (
    ClearSubjectKey,
    ConfigKey,
    ConfigValue,
    ContextKey,
    DeleteSubjectKey,
    DeleteSubjectValue,
    Exists,
    MaxIdKey,
    MaxIdValue,
    Mode,
    ModeKey,
    ModeValue,
    NoopKey,
    Record,
    SchemaKey,
    SchemaValue,
)

AVRO = Schema(SchemaType.AVRO, '"string"')
REFERRING = Schema(SchemaType.PROTOBUF, 'syntax = "proto3";', (Reference("a.proto", "a", 2),))

WRITTEN = [
    (
        Record(SchemaKey("s", 1), SchemaValue("s", 1, 7, AVRO)),
        b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
        b'{"subject":"s","version":1,"id":7,"schema":"\\"string\\"","deleted":false}',
    ),
    (
        Record(SchemaKey("s", 2), SchemaValue("s", 2, 8, REFERRING, deleted=True)),
        b'{"keytype":"SCHEMA","subject":"s","version":2,"magic":1}',
        (
            b'{"subject":"s","version":2,"id":8,"schemaType":"PROTOBUF",'
            b'"references":[{"name":"a.proto","subject":"a","version":2}],'
            b'"schema":"syntax = \\"proto3\\";","deleted":true}'
        ),
    ),
    (
        Record(ConfigKey(None), ConfigValue(Level.FULL)),
        b'{"keytype":"CONFIG","magic":0}',
        b'{"compatibilityLevel":"FULL"}',
    ),
    (
        Record(ConfigKey("s"), ConfigValue(Level.NONE)),
        b'{"keytype":"CONFIG","subject":"s","magic":0}',
        b'{"subject":"s","compatibilityLevel":"NONE"}',
    ),
    (
        Record(ModeKey("s"), ModeValue(Mode.READONLY)),
        b'{"keytype":"MODE","subject":"s","magic":0}',
        b'{"subject":"s","mode":"READONLY"}',
    ),
    (
        Record(DeleteSubjectKey("s"), DeleteSubjectValue(3)),
        b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}',
        b'{"subject":"s","version":3}',
    ),
    (
        Record(ClearSubjectKey("s"), Exists()),
        b'{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}',
        b'{"subject":"s"}',
    ),
    (
        Record(ContextKey(".billing"), Exists()),
        b'{"keytype":"CONTEXT","tenant":"default","context":".billing","magic":0}',
        b'{"tenant":"default","context":".billing"}',
    ),
    (Record(NoopKey(), None), b'{"keytype":"NOOP","magic":0}', None),
    (Record(MaxIdKey("."), MaxIdValue(9)), b'{"keytype":"NOOP","magic":0,"maxIdOf":"."}', b'{"maxId":9}'),
    (Record(SchemaKey("s", 1), None), b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', None),
]


@pytest.mark.parametrize(("record", "key", "value"), WRITTEN, ids=lambda each: type(each).__name__)
def test_a_record_is_written_as_confluents_registry_writes_it(
    record: Record, key: bytes, value: bytes | None
) -> None:
    assert (encode_key(record.key), encode_value(record)) == (key, value)


@pytest.mark.parametrize(("record", "key", "value"), WRITTEN, ids=lambda each: type(each).__name__)
def test_and_read_again(record: Record, key: bytes, value: bytes | None) -> None:
    assert decode(key, value) == record


def test_what_newer_registries_add_is_no_obstacle() -> None:
    found = decode(
        b'{"magic":1,"keytype":"SCHEMA","version":1,"subject":"s","new":true}',
        b'{"subject":"s","version":1,"id":7,"md5":"x","schemaType":"AVRO","references":[],"metadata":null,'
        b'"ruleSet":null,"schema":"\\"string\\"","deleted":false,"offset":3,"ts":1}',
    )

    assert found == Record(SchemaKey("s", 1), SchemaValue("s", 1, 7, AVRO))


def test_older_registries_write_null_for_no_subject() -> None:
    assert decode(
        b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FULL"}'
    ) == Record(ConfigKey(None), ConfigValue(Level.FULL))


def test_settings_that_mean_nothing_to_us_are_kept() -> None:
    value = (
        b'{"subject":"s","defaultMetadata":{"a":1},"alias":"t","normalize":true,"compatibilityLevel":"FULL"}'
    )
    record = decode(b'{"keytype":"CONFIG","subject":"s","magic":0}', value)

    assert encode_value(record) == value


def test_text_is_written_in_utf8() -> None:
    record = Record(SchemaKey("ü", 1), SchemaValue("ü", 1, 1, AVRO))

    assert encode_key(record.key) == '{"keytype":"SCHEMA","subject":"ü","version":1,"magic":1}'.encode()
    assert decode(encode_key(record.key), encode_value(record)) == record


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"", None),
        (b"\xff", None),
        (b"[]", None),
        (b"{}", None),
        (b'{"keytype":"ASSOC"}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":0,"magic":1}', None),
        (b'{"keytype":"SCHEMA","subject":"s","version":true,"magic":1}', None),
        (b'{"keytype":"SCHEMA","subject":null,"version":1,"magic":1}', None),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b"not JSON"),
        (
            b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
            b'{"id":1,"schema":"x","schemaType":"XML"}',
        ),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b'{"id":"1","schema":"x"}'),
        (
            b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
            b'{"id":1,"schema":"x","references":[1]}',
        ),
        (b'{"keytype":"CONFIG","magic":0}', b'{"compatibilityLevel":"SOME"}'),
        (b'{"keytype":"MODE","magic":0}', b'{"mode":"SOME"}'),
        (b'{"keytype":"DELETE_SUBJECT","subject":"s"}', b'{"version":null}'),
        (b'{"keytype":"MODE","magic":0}', b"[" * 100_000),
    ],
)
def test_what_is_no_record_of_a_registrys_is_a_bad_record(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(BadRecord):
        decode(key, value)
