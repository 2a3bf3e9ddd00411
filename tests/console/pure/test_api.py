"""An OpenAPI document as a page shows it."""

import json

from headrace.gateway.console.views.api import curl, operations

DOCUMENT = {
    "paths": {
        "/healthz": {"get": {"tags": ["health"], "summary": "Well?", "responses": {"200": {}}}},
        "/topics/{name}": {
            "parameters": [],
            "post": {
                "tags": ["other", "topics"],
                "summary": "Make",
                "parameters": [
                    {
                        "name": "name",
                        "in": "path",
                        "required": True,
                        "schema": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    }
                ],
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Topic"}}}
                },
                "responses": {
                    "201": {"description": "made", "content": {}},
                    "409": {"description": "is there"},
                },
            },
        },
    },
    "components": {
        "schemas": {
            "Topic": {
                "type": "object",
                "properties": {
                    "partitions": {"type": "integer", "examples": [6]},
                    "kind": {"enum": ["a", "b"]},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "inner": {"$ref": "#/components/schemas/Topic"},
                },
            }
        }
    },
}


def test_operations_stand_by_subject_with_topics_before_health() -> None:
    assert list(operations(DOCUMENT)) == ["topics", "health"]


def test_a_body_is_outlined_by_its_schema_and_one_that_holds_itself_ends() -> None:
    (made,) = operations(DOCUMENT)["topics"]
    body = json.loads(made.body)
    assert (body["partitions"], body["kind"], body["tags"]) == (6, "a", ["string"])
    assert body["inner"]["inner"]["partitions"] == 6
    assert made.parameters[0].type == "string"
    assert made.statuses == (("201", "made"), ("409", "is there"))


def test_how_to_ask_it_is_one_line() -> None:
    (made,) = operations(DOCUMENT)["topics"]
    line = curl(made, "http://h:1")
    assert line.startswith("curl -X POST 'http://h:1/topics/{name}' -H 'content-type: application/json' -d ")
    (well,) = operations(DOCUMENT)["health"]
    assert curl(well, "http://h:1") == "curl http://h:1/healthz"
