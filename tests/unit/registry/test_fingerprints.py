"""A schema's fingerprint: the bytes that go into it, and who is found by it."""

import hashlib
from typing import Any
from uuid import UUID

import pytest

from headrace.registry.fingerprints import fingerprint, guid, read_guid
from headrace.registry.formats import Reference, Schema, SchemaType
from headrace.registry.record_json import decode
from headrace.registry.records import SchemaValue
from headrace.registry.refusals import NoSuchSchema
from unit.registry.registries import ARegistry, record_type

TEXT = '"string"'


def value(metadata: Any = None, rule_set: Any = None, *references: Reference) -> SchemaValue:
    return SchemaValue("s", 1, 1, Schema(SchemaType.AVRO, TEXT, references), metadata, rule_set)


RULE = {
    "name": "mask",
    "doc": "why",
    "mode": "WRITE",
    "type": "CEL",
    "tags": ["PII", "GDPR"],
    "params": {"z": "1", "a": "2"},
    "expr": "true",
    "onSuccess": "NONE",
    "onFailure": "ERROR",
    "disabled": True,
}


@pytest.mark.parametrize(
    ("schema", "hashed"),
    [
        (value(), b'"string"'),
        (
            value(None, None, Reference("a.proto", "a", 258), Reference("b.proto", "b", 1)),
            b'"string"a.protoa\0\0\1\2b.protob\0\0\0\1',
        ),
        (value({}), b'"string"\1'),
        (value({}, {}), b'"string"\1\1'),
        (
            value({"properties": {"team": "x", "owner": "us"}, "sensitive": ["team", "owner"]}),
            b'"string"\1ownerusteamxownerteam',
        ),
        (value({"tags": {"b": ["2", "1", "2"], "a": []}}), b'"string"\1ab12'),
        (value({"properties": {"count": 1, "on": True}}), b'"string"\1count1ontrue'),
        (
            value(None, {"domainRules": [RULE], "migrationRules": [{"name": "m", "kind": "CONDITION"}]}),
            b'"string"\1mCONDITIONWRITEREADmaskwhyTRANSFORMWRITECELGDPRPIIa2z1trueNONEERROR\1',
        ),
        (value(None, {"enableAt": "CLIENT"}), b'"string"\1CLIENT'),
    ],
)
def test_what_goes_in_is_what_goes_into_confluents(schema: SchemaValue, hashed: bytes) -> None:
    expected = hashlib.md5(hashed).digest()

    assert fingerprint(schema) == expected
    assert guid(schema) == str(UUID(bytes=expected))
    assert read_guid(guid(schema).upper()) == expected


@pytest.mark.parametrize("odd", [[], "text", 7, {"properties": []}, {"tags": {"a": {"b": None}}}])
def test_whatever_stands_in_a_record_the_schema_has_a_fingerprint(odd: Any) -> None:
    assert fingerprint(value(odd, odd)) == fingerprint(value(odd, odd))
    assert fingerprint(value({"properties": odd}, {"domainRules": [odd]})) != fingerprint(value())


def test_half_a_character_in_another_registrys_record_is_no_reason_to_stop() -> None:
    registry = ARegistry()
    said = rb'{"subject":"s","version":1,"id":7,"schema":"\"\ud800\"","deleted":false}'
    registry.apply(decode(b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', said))

    assert registry.state.by_guid(guid(registry.state.by_id(7))).id == 7


def test_a_schema_is_found_by_its_fingerprint_after_every_start() -> None:
    registry = ARegistry()
    made = registry.register("orders-value", record_type("id"), metadata={"properties": {"a": "b"}})

    assert registry.replayed().state.by_guid(guid(made)) == made
    assert registry.compacted().state.by_guid(guid(made)) == made


def test_it_is_found_in_any_context_and_in_the_default_one_first() -> None:
    registry = ARegistry()
    text = record_type("id")
    registry.register(":.billing:x", record_type("other"))
    elsewhere = registry.register(":.billing:a", text)
    assert registry.state.by_guid(guid(elsewhere)) == elsewhere
    here = registry.register("z", text)

    assert registry.state.by_guid(guid(elsewhere)) == here
    assert [each.id for each in registry.state.versions_with_fingerprint(fingerprint(here))] == [
        here.id,
        elsewhere.id,
    ]


def test_it_is_found_until_the_last_version_is_deleted_for_good() -> None:
    registry = ARegistry()
    made = registry.register("one", record_type("id"))
    registry.register("two", record_type("id"))
    for subject in ("one", "two"):
        assert registry.state.by_guid(guid(made)).id == made.id
        registry.delete(subject)
        assert registry.state.by_guid(guid(made)).id == made.id
        registry.delete(subject, permanent=True)
    with pytest.raises(NoSuchSchema):
        registry.state.by_guid(guid(made))


@pytest.mark.parametrize("text", ["", "x", "1234", "{}", "0" * 31, "0" * 33, "g" * 32, "é" * 32])
def test_what_is_no_fingerprint_is_found_nowhere(text: str) -> None:
    assert read_guid(text) is None
    with pytest.raises(NoSuchSchema):
        ARegistry().state.by_guid(text)
