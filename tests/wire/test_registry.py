"""The registry's REST API, route by route, with a real broker behind it."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from headrace.testing import Broker
from wire.registry_calls import RegistryCalls

V1 = "application/vnd.schemaregistry.v1+json"
FIELDS = [{"name": "id", "type": "long"}]
ONE: dict[str, Any] = {"type": "record", "name": "Order", "fields": FIELDS}
TWO = {**ONE, "fields": [*FIELDS, {"name": "item", "type": "string", "default": ""}]}
INCOMPATIBLE = {**ONE, "fields": [*FIELDS, {"name": "item", "type": "string"}]}
PROTO = 'syntax = "proto3";\npackage shop;\n\nmessage Order {\n  int64 id = 1;\n}\n'
_numbers = count()


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryCalls]:
    with Broker() as broker:
        yield RegistryCalls(broker.http)


@pytest.fixture
def subject() -> str:
    """A name that no other test uses."""
    return f"subject-{next(_numbers)}"


@pytest.fixture
def unique() -> dict[str, Any]:
    """A schema that no other test uses."""
    return {"type": "enum", "name": f"E{next(_numbers)}", "symbols": ["A"]}


def compact(schema: object) -> str:
    return json.dumps(schema, separators=(",", ":"))


# -- subjects --------------------------------------------------------------------------------------


def test_a_schema_is_registered_once_and_read_in_every_way(
    registry: RegistryCalls, subject: str, unique: dict[str, Any]
) -> None:
    made = registry.register(subject, unique)
    assert (made.status, made.media_type, made.body["version"]) == (200, V1, 1)
    assert registry.register(subject, unique).body == made.body
    schema_id = made.body["id"]

    whole = {
        "subject": subject,
        "version": 1,
        "id": schema_id,
        "guid": made.body["guid"],
        "schema": compact(unique),
    }
    for version in ("1", "latest", "-1", "LATEST"):
        assert registry.get(f"/subjects/{subject}/versions/{version}").body == whole
    assert registry.get(f"/subjects/{subject}/versions/1/schema").body == unique
    assert registry.get(f"/subjects/{subject}/versions").body == [1]
    assert registry.post(f"/subjects/{subject}", {"schema": json.dumps(unique)}).body == whole
    assert subject in registry.get("/subjects").body
    by_id = {"schema": compact(unique), "guid": made.body["guid"]}
    assert registry.get(f"/schemas/ids/{schema_id}").body == by_id
    assert registry.get(f"/schemas/ids/{schema_id}?subject={subject}").body == {
        **by_id,
        "subject": subject,
        "version": 1,
    }
    assert registry.get(f"/schemas/ids/{schema_id}/schema").body == unique
    assert registry.get(f"/schemas/ids/{schema_id}/subjects").body == [subject]
    assert registry.get(f"/schemas/ids/{schema_id}/versions").body == [{"subject": subject, "version": 1}]
    assert registry.get(f"/schemas/ids/{schema_id}?fetchMaxId=true").body["maxId"] >= schema_id
    assert registry.get(f"/schemas/guids/{made.body['guid']}").body["id"] == schema_id
    assert registry.get(f"/schemas/guids/{made.body['guid']}/ids").body == [{"context": ".", "id": schema_id}]
    assert registry.get("/schemas/guids/x/ids").body == []
    assert registry.get(f"/schemas?subjectPrefix={subject}").body == [whole]


@pytest.mark.parametrize(
    "encoded", ["a%2Fb", "a%2Fversions%2F1", "%C3%BC", "a%20b", "%25", "a+b", "..%2Fup", "a:b", "*"]
)
def test_a_subject_may_be_called_almost_anything(registry: RegistryCalls, encoded: str) -> None:
    assert registry.register(encoded, ONE).status == 200
    found = registry.get(f"/subjects/{encoded}/versions/latest")

    assert found.status == 200
    assert found.body["subject"] in registry.get("/subjects").body
    assert registry.delete(f"/subjects/{encoded}").body == [1]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/subjects/a%0Ab/versions", 422, 42208),
        ("/subjects/__GLOBAL/versions", 422, 42208),
        ("/subjects/%FF/versions", 422, 42208),
        ("/subjects//versions", 404, 404),
    ],
)
def test_but_not_anything_at_all(registry: RegistryCalls, path: str, status: int, code: int) -> None:
    said = registry.post(path, {"schema": '"string"'})
    assert (said.status, said.code) == (status, code)


def test_a_slash_at_the_end_says_nothing(registry: RegistryCalls, subject: str) -> None:
    registry.register(subject, ONE)
    for path in ("/subjects", f"/subjects/{subject}/versions", "/config", "/mode", "/schemas/types"):
        assert registry.get(f"{path}/") == registry.get(path)
    assert registry.put("/config/", {"compatibility": "BACKWARD"}).status == 200
    assert registry.delete(f"/subjects/{subject}/").body == [1]
    assert registry.delete("/subjects/").status == 405


def test_a_schema_that_may_not_follow_is_a_conflict(registry: RegistryCalls, subject: str) -> None:
    registry.register(subject, ONE)
    said = registry.register(subject, INCOMPATIBLE)

    assert (said.status, said.code) == (409, 409)
    assert "item" in said.body["message"]
    assert registry.get(f"/subjects/{subject}/versions").body == [1]


def test_long_lists_come_in_pieces(registry: RegistryCalls, subject: str) -> None:
    for number in range(3):
        registry.register(f"{subject}-{number}", ONE)
    names = [f"{subject}-{number}" for number in range(3)]

    assert registry.get(f"/subjects?subjectPrefix={subject}").body == names
    assert registry.get(f"/subjects?subjectPrefix={subject}&offset=1&limit=1").body == names[1:2]
    assert registry.get(f"/subjects?subjectPrefix={subject}&limit=0").body == []
    assert registry.get("/subjects?offset=-1").status == 422


def test_deletion_is_soft_and_then_for_good(
    registry: RegistryCalls, subject: str, unique: dict[str, Any]
) -> None:
    schema_id = registry.register(subject, unique).body["id"]
    assert registry.delete(f"/subjects/{subject}?permanent=true").code == 40405
    assert registry.delete(f"/subjects/{subject}/versions/1?permanent=true").code == 40407
    assert registry.delete(f"/subjects/{subject}/versions/latest").body == 1
    assert registry.delete(f"/subjects/{subject}/versions/1").code == 40406
    assert registry.delete(f"/subjects/{subject}").code == 40404
    assert subject not in registry.get("/subjects").body
    assert subject in registry.get("/subjects?deleted=true").body
    assert subject in registry.get("/subjects?deletedOnly=true").body
    assert registry.get(f"/subjects/{subject}/versions").code == 40401
    assert registry.get(f"/subjects/{subject}/versions?deleted=true").body == [1]
    assert registry.get(f"/subjects/{subject}/versions?deleted=true&deletedAsNegative=true").body == [-1]
    assert registry.get(f"/subjects/{subject}/versions/1?deleted=true").body["deleted"] is True
    assert registry.get(f"/schemas/ids/{schema_id}").status == 200
    assert registry.get(f"/schemas/ids/{schema_id}/versions").body == []

    assert registry.delete(f"/subjects/{subject}?permanent=true").body == [1]
    assert registry.get(f"/schemas/ids/{schema_id}").code == 40403
    assert registry.get(f"/schemas/ids/{schema_id}/versions").code == 40403
    assert registry.delete(f"/subjects/{subject}").code == 40401


def test_what_others_refer_to_is_not_deleted(registry: RegistryCalls, subject: str) -> None:
    common = {"type": "record", "name": f"Common{subject[8:]}", "fields": FIELDS}
    registry.register(f"{subject}-common", common)
    referring = {"type": "record", "name": "R", "fields": [{"name": "c", "type": common["name"]}]}
    reference = {"name": common["name"], "subject": f"{subject}-common", "version": 1}
    made = registry.register(subject, referring, references=[reference])

    assert made.status == 200, made
    assert registry.get(f"/subjects/{subject}-common/versions/1/referencedby").body == [made.body["id"]]
    assert registry.get(f"/schemas/ids/{made.body['id']}").body["references"] == [reference]
    assert registry.delete(f"/subjects/{subject}-common").code == 42206
    newest = registry.register(f"{subject}-newest", referring, references=[{**reference, "version": -1}])
    assert registry.get(f"/schemas/ids/{newest.body['id']}").body["references"] == [reference]
    missing = {**reference, "subject": "nowhere"}
    assert registry.register(subject, referring, references=[missing]).code == 42201
    resolved = registry.get(f"/schemas/ids/{made.body['id']}?format=resolved").body["schema"]
    assert common["name"] in resolved
    assert '"long"' in resolved


def test_a_protobuf_schema_keeps_its_type(registry: RegistryCalls, subject: str) -> None:
    made = registry.register(subject, PROTO, schemaType="PROTOBUF")
    assert made.status == 200, made
    found = registry.get(f"/schemas/ids/{made.body['id']}").body

    assert found["schemaType"] == "PROTOBUF"
    assert "message Order" in found["schema"]
    text = registry.get(f"/schemas/ids/{made.body['id']}/schema")
    assert (text.body, text.media_type) == (found["schema"], V1)
    assert registry.get(f"/schemas/ids/{made.body['id']}?format=serialized").body["schema"] != found["schema"]


def test_metadata_is_kept_and_found(registry: RegistryCalls, subject: str) -> None:
    for owner, schema in (("us", ONE), ("them", TWO)):
        registry.register(
            subject, schema, metadata={"properties": {"owner": owner}}, ruleSet={"domainRules": []}
        )

    found = registry.get(f"/subjects/{subject}/metadata?key=owner&value=us").body
    assert (found["version"], found["metadata"], found["ruleSet"]) == (
        1,
        {"properties": {"owner": "us"}},
        {"domainRules": []},
    )
    assert registry.get(f"/subjects/{subject}/metadata?key=owner&value=nobody").code == 40403


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/subjects/no-such/versions", 404, 40401),
        ("GET", "/subjects/no-such/versions/1", 404, 40401),
        ("GET", "/subjects/known/versions/99", 404, 40402),
        ("GET", "/subjects/known/versions/0", 422, 42202),
        ("GET", "/subjects/known/versions/new", 422, 42202),
        ("GET", "/subjects/known/versions/99999999999999999999", 422, 42202),
        ("GET", "/subjects/known/versions/%D9%A1", 422, 42202),
        ("DELETE", "/subjects/known/versions/99", 404, 40402),
        ("GET", "/schemas/ids/999999", 404, 40403),
        ("GET", "/schemas/ids/99999999999999999999", 404, 40403),
        ("GET", "/schemas/ids/x", 404, 404),
        ("GET", "/schemas/guids/x", 404, 40403),
        ("GET", "/config/known", 404, 40408),
        ("GET", "/mode/known", 404, 40409),
        ("DELETE", "/config/known", 404, 40401),
        ("DELETE", "/mode/known", 404, 40401),
        ("GET", "/subjects?deleted=perhaps", 422, 422),
        ("PATCH", "/subjects", 405, 405),
        ("DELETE", "/contexts/.nobody", 204, None),
    ],
)
def test_what_is_not_there_has_a_number_and_a_sentence(
    registry: RegistryCalls, method: str, path: str, status: int, code: int | None
) -> None:
    registry.register("known", ONE)
    said = registry.ask(method, path, None, {})

    assert (said.status, said.code) == (status, code)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"not JSON", 422, 422),
        (b"", 422, 422),
        (b"\xff\xfe", 422, 422),
        (b"[" * 100_000, 422, 422),
        ([], 422, 422),
        ({}, 422, 422),
        ({"schema": 1}, 422, 422),
        ({"schema": ""}, 422, 42201),
        ({"schema": '{"type":"nothing"}'}, 422, 42201),
        ({"schema": '"string"', "schemaType": "XML"}, 422, 42201),
        ({"schema": '"string"', "references": [{"name": "a"}]}, 422, 422),
        ({"schema": '"string"', "references": [{"name": "a", "subject": "b", "version": 0}]}, 422, 42202),
        ({"schema": '"string"', "id": 5}, 422, 42205),
        ({"schema": '"string"', "id": 2**40}, 422, 42202),
        ({"schema": '"string"', "metadata": {"a": "\ud800"}}, 422, 42201),
        (b'{"schema": "\\"string\\"", "metadata": {"a": NaN}}', 422, 42201),
        ({"schema": '"string"', "metadata": {"properties": [1]}}, 422, 422),
        ({"schema": '"string"', "metadata": {"tags": "PII"}}, 422, 422),
        ({"schema": '"string"', "schemaTagsToAdd": [{"tags": ["PII"]}]}, 422, 42205),
        ({"schema": '"' + "x" * 2_000_000 + '"'}, 422, 42201),
    ],
    ids=lambda each: repr(each)[:40],
)
def test_a_body_that_cannot_be_meant_is_refused_and_changes_nothing(
    registry: RegistryCalls, subject: str, body: object, status: int, code: int
) -> None:
    said = registry.post(f"/subjects/{subject}/versions", body)

    assert (said.status, said.code) == (status, code), said
    assert registry.get(f"/subjects/{subject}/versions").code == 40401


def test_a_body_larger_than_the_gateway_takes_is_refused(registry: RegistryCalls) -> None:
    assert registry.post("/subjects/s/versions", b" " * (64 * 1024 * 1024 + 1)).status == 413


def test_what_newer_clients_add_is_no_obstacle(registry: RegistryCalls, subject: str) -> None:
    extra = {
        "schemaType": None,
        "references": None,
        "metadata": None,
        "ruleSet": None,
        "id": -1,
        "version": 0,
    }
    assert registry.register(subject, ONE, somethingNew={"a": 1}, **extra).status == 200


def test_whoever_wants_plain_json_gets_it_by_that_name(registry: RegistryCalls) -> None:
    assert registry.get("/subjects", accept="application/json").media_type == "application/json"
    assert registry.get("/subjects", accept="*/*").media_type == V1
    assert registry.get("/subjects", accept=f"{V1}, application/json; q=0.5").media_type == V1
    assert registry.get("/subjects/no-such/versions", accept="*/*").media_type == V1


# -- rules -----------------------------------------------------------------------------------------


def test_compatibility_is_checked_without_registering(registry: RegistryCalls, subject: str) -> None:
    path = f"/compatibility/subjects/{subject}/versions"
    assert registry.post(f"{path}/latest", {"schema": json.dumps(ONE)}).body == {"is_compatible": True}
    assert registry.post(f"{path}/1", {"schema": json.dumps(ONE)}).code == 40402
    registry.register(subject, ONE)
    bad = {"schema": json.dumps(INCOMPATIBLE)}

    assert registry.post(path, {"schema": json.dumps(TWO)}).body == {"is_compatible": True}
    for against in ("", "/1", "/latest"):
        assert registry.post(path + against, bad).body == {"is_compatible": False}
        said = registry.post(f"{path}{against}?verbose=true", bad).body
        assert any("item" in each for each in said["messages"])
    assert registry.post(f"{path}?verbose=true", {"schema": "{"}).body["is_compatible"] is False
    assert registry.post(path, {"schema": "{"}).code == 42201
    assert registry.get(f"/subjects/{subject}/versions").body == [1]


def test_settings_of_a_subject_come_and_go(registry: RegistryCalls, subject: str) -> None:
    path = f"/config/{subject}"
    assert registry.get(f"{path}?defaultToGlobal=true").body == {"compatibilityLevel": "BACKWARD"}
    assert registry.put(path, {"compatibility": "none"}).body == {"compatibility": "NONE"}
    assert registry.get(path).body == {"compatibilityLevel": "NONE"}
    registry.register(subject, ONE)
    assert registry.register(subject, INCOMPATIBLE).status == 200
    assert registry.put(path, {"normalize": True}).body == {"compatibility": "NONE", "normalize": True}
    assert registry.put(path, {"compatibility": "SOME"}).code == 42203
    assert registry.put(path, {"defaultRuleSet": {"domainRules": []}}).code == 42205
    assert registry.delete(path).body == {"compatibilityLevel": "NONE", "normalize": True}
    assert registry.get(path).code == 40408


def test_settings_for_all_come_and_go(registry: RegistryCalls, subject: str) -> None:
    assert registry.get("/config").body == {"compatibilityLevel": "BACKWARD"}
    assert registry.put("/config", {"compatibility": "FULL"}).body == {"compatibility": "FULL"}
    assert registry.get("/config").body == registry.get("/config/:.:").body == {"compatibilityLevel": "FULL"}
    assert registry.get(f"/config/{subject}?defaultToGlobal=true").body == {"compatibilityLevel": "FULL"}
    assert registry.delete("/config").body == {"compatibilityLevel": "FULL"}
    assert registry.get("/config").body == {"compatibilityLevel": "BACKWARD"}


def test_an_alias_leads_to_another_subject(registry: RegistryCalls, subject: str) -> None:
    registry.register(subject, ONE)
    registry.put(f"/config/{subject}-alias", {"alias": subject})

    assert registry.get(f"/subjects/{subject}-alias/versions/latest").body["subject"] == subject
    registry.register(f"{subject}-alias", TWO)
    assert registry.get(f"/subjects/{subject}/versions").body == [1, 2]


def test_modes_say_what_may_be_done(registry: RegistryCalls, subject: str) -> None:
    assert registry.get("/mode").body == {"mode": "READWRITE"}
    assert registry.put(f"/mode/{subject}", {"mode": "readonly"}).body == {"mode": "READONLY"}
    assert registry.register(subject, ONE).code == 42205
    assert registry.put(f"/mode/{subject}", {"mode": "some"}).code == 42204
    assert registry.put(f"/mode/{subject}", {"mode": "IMPORT"}).status == 200
    assert registry.register(subject, ONE).code == 42205
    imported = registry.register(subject, {"type": "fixed", "name": "F", "size": 3}, id=77_777, version=9)
    assert (imported.body["id"], imported.body["version"]) == (77_777, 9)
    assert registry.register(subject, ONE, id=77_777, version=10).code == 42205
    assert registry.delete(f"/mode/{subject}").body == {"mode": "IMPORT"}
    assert registry.get(f"/mode/{subject}").code == 40409
    assert registry.get(f"/mode/{subject}?defaultToGlobal=true").body == {"mode": "READWRITE"}
    assert registry.put("/mode", {"mode": "IMPORT"}).code == 42205
    assert registry.put("/mode?force=true", {"mode": "IMPORT"}).body == {"mode": "IMPORT"}
    assert registry.delete("/mode").body == {"mode": "IMPORT"}


# -- contexts, and the rest ------------------------------------------------------------------------


def test_contexts_are_registries_of_their_own(registry: RegistryCalls, subject: str) -> None:
    name = f":.{subject}:s"
    made = registry.register(name, {"type": "fixed", "name": "F", "size": 5})
    assert made.body["id"] == 1
    assert f".{subject}" in registry.get("/contexts").body
    assert registry.get(f"/contexts?contextPrefix=.{subject}").body == [f".{subject}"]
    assert registry.get(f"/schemas/ids/1?subject=:.{subject}:").body["subject"] == name
    assert registry.get(f"/subjects?subjectPrefix=:.{subject}:").body == [name]
    assert name in registry.get("/subjects").body
    assert registry.delete(f"/contexts/.{subject}").code == 42211
    registry.delete(f"/subjects/{name}")
    registry.delete(f"/subjects/{name}?permanent=true")
    assert registry.delete(f"/contexts/.{subject}").status == 204
    assert f".{subject}" not in registry.get("/contexts").body


def test_a_context_is_a_registry_of_its_own_to_clients_that_have_it_in_their_url(
    registry: RegistryCalls, subject: str
) -> None:
    context = f".{subject}"
    inside = f"/contexts/{context}"
    made = registry.post(f"{inside}/subjects/a%2Fb/versions", {"schema": json.dumps(ONE)})
    assert made.body["id"] == 1

    name = f":{context}:a/b"
    assert registry.get(f"{inside}/subjects").body == [name]
    assert registry.get(f"{inside}/subjects?subjectPrefix=b").body == []
    assert registry.get(f"{inside}/subjects/a%2Fb/versions/latest").body["subject"] == name
    assert registry.get(f"{inside}/schemas/ids/1").body["subject"] == name
    assert registry.get(f"{inside}/schemas/ids/1?subject=a%2Fb").body["subject"] == name
    assert [each["subject"] for each in registry.get(f"{inside}/schemas").body] == [name]
    assert registry.put(f"{inside}/config", {"compatibility": "NONE"}).status == 200
    assert registry.get(f"/config/:{context}:").body == {"compatibilityLevel": "NONE"}
    assert registry.get(f"{inside}/config/a%2Fb?defaultToGlobal=true").body == {"compatibilityLevel": "NONE"}
    assert name in registry.get("/contexts/:.:/subjects").body
    assert registry.delete(f"{inside}/subjects/a%2Fb").body == [1]


def test_the_registry_says_what_it_is(registry: RegistryCalls) -> None:
    assert sorted(registry.get("/schemas/types").body) == ["AVRO", "JSON", "PROTOBUF"]
    assert registry.get("/v1/metadata/id").body["scope"]["clusters"]["kafka-cluster"]
    assert registry.get("/v1/metadata/version").body["version"]
    assert registry.get("/").body == {}
