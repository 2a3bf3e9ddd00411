"""Requests that may cost more than their bytes: for one operation, or stories of several requests."""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from urllib.parse import quote

from http_amplification.routes import Operation

LONG: Final = 60_000  # bytes of a query or of headers: as many as are taken


@dataclass(frozen=True, slots=True)
class Request:
    """One request, as it goes over the wire."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None

    @property
    def size(self) -> int:
        return (
            len(self.target) + sum(len(n) + len(v) for n, v in self.headers.items()) + len(self.body or b"")
        )


@dataclass(frozen=True, slots=True)
class Attack:
    """Requests that are sent one after the other, measured together; the first `prepared` are not."""

    label: str
    requests: tuple[Request, ...]
    prepared: int = 0


# -- bodies ------------------------------------------------------------------------------------


def bodies(size: int) -> Iterator[tuple[str, bytes]]:
    """JSON, and what is none, of about so many bytes, whatever a route expects."""
    half = size // 2
    yield "deep list", b"[" * half + b"]" * half
    yield "deep object", b'{"a":' * (size // 6) + b"1" + b"}" * (size // 6)
    yield "500 deep", (b"[" * 500 + b"]" * 500 + b",") * (size // 1001) + b"1"
    yield "list of numbers", b"[" + b"1," * half + b"1]"
    yield "list of objects", b"[" + b"{}," * (size // 3) + b"{}]"
    yield "list of texts", b"[" + b'"",' * (size // 3) + b'""]'
    yield "keys", b"{" + b",".join(b'"%x":1' % n for n in range(size // 9)) + b"}"
    yield "one key often", b"{" + b'"a":1,' * (size // 6) + b'"a":1}'
    yield "a long text", b'"' + b"x" * size + b'"'
    yield "escapes", b'"' + b"\\u0000" * (size // 6) + b'"'
    yield "half surrogates", b'"' + b"\\ud800" * (size // 6) + b'"'
    yield "a long number", b"9" * size
    yield "4,000 digits", b"[" + (b"9" * 4000 + b",") * (size // 4001) + b"1]"
    yield "a long fraction", b"0." + b"9" * size
    yield "exponents", b"[" + b"1e308," * (size // 6) + b"1]"
    yield "an exponent", b"1e" + b"9" * size
    yield "spaces", b" " * size
    yield "no JSON", b"x" * size
    yield "compressed", gzip.compress(b"[" + b"0," * (size * 100) + b"0]", 9)[:size]


def values(size: int) -> Iterator[tuple[str, Any]]:
    """Values that fill a field of a body that is otherwise right."""
    yield "a long text", "x" * size
    yield "a pattern", ("(a+)+" * (size // 5))[:size]
    yield "control characters", "\0" * (size // 6)
    yield "a list", [1] * (size // 3)
    yield "objects", [{}] * (size // 4)
    yield "keys", {f"{n:x}": 1 for n in range(size // 10)}
    yield "deep", _nested(150, 1)
    yield "a large number", 10**4000
    yield "a fraction", 1e308
    yield "nothing", None


def _nested(depth: int, value: Any) -> Any:
    for _ in range(depth):
        value = {"a": [value]}
    return value


class Shaped:
    """Bodies that a route would take, by its schema, but with one part of them blown up."""

    def __init__(self, schemas: Mapping[str, Any], known: Mapping[str, str]) -> None:
        self._schemas = schemas
        self._known = known

    def bodies(self, schema: Any, size: int, rng: Random) -> Iterator[tuple[str, Any]]:
        right = self._right(schema, 0)
        if isinstance(right, dict):
            for name in right:
                for what, value in values(size):
                    yield f"{name} is {what}", {**right, name: value}
                if isinstance(right[name], list) and right[name]:
                    each = right[name][0]
                    yield f"{name} many times", {**right, name: _many(each, size)}
                    yield f"{name} wrong many times", {**right, name: _many({"wrong": 1}, size)}
                    if isinstance(each, dict):
                        inner = rng.choice(sorted(each)) if each else "x"
                        for what, value in values(size):
                            yield f"{name}.{inner} is {what}", {**right, name: [{**each, inner: value}]}
        yield "right", right

    def _right(self, schema: Any, depth: int) -> Any:
        """A value that fits, with a member in every list."""
        if not isinstance(schema, dict) or depth > 6:
            return "x"
        if "$ref" in schema:
            return self._right(self._schemas[schema["$ref"].rpartition("/")[2]], depth + 1)
        for name in ("anyOf", "oneOf", "allOf"):
            if schema.get(name):
                return self._right(schema[name][0], depth + 1)
        if schema.get("enum"):
            return schema["enum"][-1]
        match schema.get("type"):
            case "object":
                fields = schema.get("properties", {})
                return {name: self._named(name, each, depth) for name, each in fields.items()}
            case "array":
                return [self._right(schema.get("items", {}), depth + 1)]
            case "integer":
                return max(int(schema.get("minimum", 0)), 0)
            case "number":
                return 1.0
            case "boolean":
                return False
            case "null":
                return None
        return "x"

    def _named(self, name: str, schema: Any, depth: int) -> Any:
        return self._known.get(name, self._right(schema, depth + 1))


def _many(value: Any, size: int) -> list[Any]:
    return [value] * max(1, size // (len(json.dumps(value)) + 1))


# -- requests to one operation -----------------------------------------------------------------


class Attacks:
    """All that is tried on an operation; `known` are names that there are: of a topic, a group, and so on."""

    def __init__(self, schemas: Mapping[str, Any], known: Mapping[str, str], size: int, rng: Random) -> None:
        self._shaped = Shaped(schemas, known)
        self._known = known
        self._size = size
        self._rng = rng

    def on(self, operation: Operation) -> Iterator[Attack]:
        for what, request in self._requests(operation):
            yield Attack(f"{operation.label}: {what}", (request,))

    def _requests(self, operation: Operation) -> Iterator[tuple[str, Request]]:
        path = self._path(operation)
        method = operation.method
        yield "plainly", Request(method, path)
        for name in operation.parts:
            for what, text in _texts():
                yield f"path {name} is {what}", Request(method, self._path(operation, **{name: text}))
        for name in operation.query:
            for what, text in (*_texts(), ("often", "")):
                query = "&".join([f"{name}=1"] * (LONG // 20)) if what == "often" else f"{name}={text}"
                yield f"query {name} is {what}", Request(method, f"{path}?{query}")
        yield "many parameters", Request(method, f"{path}?" + "&".join(f"{n:x}" for n in range(LONG // 6)))
        yield "escaped parameters", Request(method, f"{path}?" + "%26%3d" * (LONG // 6))
        for what, headers in _headers():
            yield what, Request(method, path, headers)
        if method in {"GET", "HEAD"}:
            return
        kinds = operation.media_types or ("application/json",)
        for what, body in bodies(self._size):
            given = {"content-type": kinds[0]} | (
                {"content-encoding": "gzip"} if what == "compressed" else {}
            )
            yield f"body {what}", Request(method, path, given, body)
        for what, value in self._shaped.bodies(operation.body, self._size, self._rng):
            for kind in kinds:
                given = {"content-type": kind}
                yield f"body ({kind}) {what}", Request(method, path, given, json.dumps(value).encode())

    def _path(self, operation: Operation, **changed: str) -> str:
        path = operation.path
        for name in operation.parts:
            value = changed[name] if name in changed else quote(self._known.get(name, "x"), safe="")
            path = path.replace("{" + name + "}", value)
        return path


def _texts() -> Iterator[tuple[str, str]]:
    yield "long", "x" * LONG
    yield "escaped", "%C3%BC" * (LONG // 6)
    yield "slashes", "%2F" * (LONG // 3)
    yield "digits", "9" * LONG
    yield "commas", "0:1," * (LONG // 4) + "0:1"
    yield "a pattern", "(a%2B)%2B" * (LONG // 9) + "$"
    yield "colons", ":." * (LONG // 2)


def _headers() -> Iterator[tuple[str, dict[str, str]]]:
    yield "accept commas", {"accept": "a/b;q=0," * (LONG // 8)}
    yield "accept semicolons", {"accept": "a/b" + ";q=0" * (LONG // 4)}
    yield "accept spaces", {"accept": "text/html" + " " * LONG + "x"}
    yield "content-type", {"content-type": "application/json" + ";a=b" * (LONG // 4)}
    yield "cookies", {"cookie": "a=b;" * (LONG // 4)}
    yield "traces", {"traceparent": "0" * LONG, "tracestate": "a=b," * (LONG // 4)}
    yield "last-event-id", {"last-event-id": "0:1," * (LONG // 4)}
    yield "languages", {"accept-language": "a," * (LONG // 2)}
    yield "forwarded", {"x-forwarded-for": "1," * (LONG // 2), "forwarded": "for=a;" * 10}
    yield "lines", {f"x-{number}": "y" for number in range(90)}


# -- schemas, and records by them --------------------------------------------------------------

Story = Callable[[str, int], Iterator[Attack]]


def stories(topic: str, size: int) -> Iterator[Attack]:
    """Schemas of every format that make much of little: registered, compared, written and read by."""
    for number, (what, kind, schema, value) in enumerate(evil_schemas(size)):
        text = schema if isinstance(schema, str) else json.dumps(schema)
        subject = f"{topic}-evil-{number}"
        body = json.dumps({"schemaType": kind, "schema": text}).encode()
        given = {"content-type": "application/json"}
        register = Request("POST", f"/subjects/{subject}/versions", given, body)
        same = Request("POST", f"/subjects/{subject}", given, body)
        compare = Request("POST", f"/compatibility/subjects/{subject}/versions", given, body)
        normal = Request("POST", f"/subjects/{subject}/versions?normalize=true", given, body)
        shown = Request("GET", f"/subjects/{subject}/versions/latest?format=resolved")
        yield Attack(f"schema {what}", (register, same, compare, normal, shown))
        embedded = {"AVRO": "avro", "JSON": "jsonschema", "PROTOBUF": "protobuf"}[kind]
        records = [{"value": value}] * max(1, min(2000, size // (len(json.dumps(value)) + 12)))
        produce = json.dumps({"value_schema": text, "records": records}).encode()
        media = {"content-type": f"application/vnd.kafka.{embedded}.v2+json"}
        yield Attack(f"records by {what}", (Request("POST", f"/topics/{topic}", media, produce),))
        in_v3 = {"value": {"type": embedded.upper(), "schema": text, "data": value}}
        batch = json.dumps(
            {"entries": [{"id": str(n), **in_v3} for n in range(max(1, size // len(json.dumps(in_v3))))]}
        )
        path = f"/v3/clusters/{{cluster_id}}/topics/{topic}/records:batch"
        yield Attack(f"records in v3 by {what}", (Request("POST", path, given, batch.encode()),))


def evil_schemas(size: int) -> Iterator[tuple[str, str, Any, Any]]:
    """What it is, its format, the schema, and a value to write by it."""
    yield from _evil_avro(size)
    yield from _evil_json(size)
    yield from _evil_protobuf(size)


def _record(name: str, *fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _evil_avro(size: int) -> Iterator[tuple[str, str, Any, Any]]:
    default = {"name": "f", "type": "string", "default": "x" * size}
    yield "an Avro default", "AVRO", _record("R", default), {}
    defaults = [{"name": f"f{n}", "type": "int", "default": n} for n in range(size // 40)]
    yield "Avro defaults", "AVRO", _record("R", *defaults), {}
    inner: Any = "int"
    for number in range(60):
        inner = _record(f"R{number}", {"name": "f", "type": ["null", inner]})
    yield "deep Avro", "AVRO", inner, {"f": None}
    both = {"name": "f", "type": ["null", "A", _record("B", {"name": "f", "type": ["null", "A", "B"]})]}
    wrong: Any = {"f": "no record"}
    for _ in range(60):
        wrong = {"f": wrong}
    yield "an Avro union of itself", "AVRO", _record("A", both), wrong
    wide = [_record(f"B{n}", {"name": "f", "type": "int"}) for n in range(size // 60)]
    yield "a wide Avro union", "AVRO", wide, {"f": 1}
    yield (
        "Avro symbols",
        "AVRO",
        {"type": "enum", "name": "E", "symbols": [f"S{n}" for n in range(size // 8)]},
        "S1",
    )
    names = [{"name": f"f{n}", "type": "int", "aliases": [f"a{n}"]} for n in range(size // 50)]
    yield "Avro aliases", "AVRO", _record("R", *names), {f"f{n}": 1 for n in range(size // 50)}
    doubled: Any = _record("D0", {"name": "x", "type": "int", "default": 0})
    value: Any = {}
    for number in range(1, 26):
        last = f"D{number - 1}"
        twice = [{"name": "a", "type": doubled, "default": {}}, {"name": "b", "type": last, "default": {}}]
        doubled = _record(f"D{number}", *twice)
    yield "Avro defaults of defaults", "AVRO", doubled, value
    yield "a large Avro fixed", "AVRO", {"type": "fixed", "name": "F", "size": 2**31 - 1}, "x"
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 10**6, "scale": 10**5}
    yield "an Avro decimal", "AVRO", decimal, "\u007f" * size


def _evil_json(size: int) -> Iterator[tuple[str, str, Any, Any]]:
    for what, keyword in (("allOf", "allOf"), ("anyOf", "anyOf"), ("oneOf", "oneOf")):
        chain: dict[str, Any] = {"d0": {"type": "object"}}
        for number in range(1, 27):
            before = {"$ref": f"#/definitions/d{number - 1}"}
            chain[f"d{number}"] = {keyword: [before, dict(before)]}
        yield f"a JSON chain of {what}", "JSON", {"definitions": chain, "$ref": "#/definitions/d26"}, {}
    chain = {"d0": {"type": "object"}}
    for number in range(1, 27):
        before = {"$ref": f"#/definitions/d{number - 1}"}
        chain[f"d{number}"] = {"properties": {"a": before, "b": {"allOf": [before, dict(before)]}}}
    value: Any = {}
    for _ in range(26):
        value = {"b": value}
    yield "a JSON chain of properties", "JSON", {"definitions": chain, "$ref": "#/definitions/d26"}, value
    asked = {"properties": {"a": {"allOf": [{"$ref": "#/definitions/A"}, {"$ref": "#/definitions/B"}]}}}
    twice = {"definitions": {"A": asked, "B": {**asked, "title": "B"}}, "$ref": "#/definitions/A"}
    value = {}
    for _ in range(60):
        value = {"a": value}
    yield "a recursive JSON schema", "JSON", twice, value
    for what, pattern in (
        ("a", "^(a+)+$"),
        ("b", r"^(a|a)*\1b$"),
        ("c", "(a?){60}a{60}"),
        ("d", "((a{99}){99}){99}"),
    ):
        yield f"a JSON pattern {what}", "JSON", {"pattern": pattern}, "a" * 60 + "!"
        yield (
            f"JSON properties by pattern {what}",
            "JSON",
            {"patternProperties": {pattern: {}}},
            {"a" * 60 + "!": 1},
        )
    unique = {"uniqueItems": True}
    yield "unique JSON items", "JSON", unique, [[n] for n in range(size // 6)]
    wide = {"anyOf": [{"type": "object", "required": [f"r{n}"]} for n in range(size // 40)]}
    yield "a wide JSON anyOf", "JSON", wide, {"x": 1}
    yield "a JSON enum", "JSON", {"enum": [[n] for n in range(size // 6)]}, [-1]
    yield (
        "JSON properties",
        "JSON",
        {"properties": {f"p{n}": {"type": "integer"} for n in range(size // 30)}},
        {"p1": 1},
    )
    contains = {"contains": {"allOf": [{"multipleOf": 0.0001 * n} for n in range(1, size // 30)]}}
    yield "JSON contains", "JSON", contains, [1.5] * 100
    unevaluated = {"$schema": "https://json-schema.org/draft/2020-12/schema", "unevaluatedProperties": False}
    unevaluated["anyOf"] = [{"properties": {f"p{n}": True}} for n in range(size // 40)]
    yield "JSON unevaluated", "JSON", unevaluated, {f"p{n}": 1 for n in range(size // 40)}


def _evil_protobuf(size: int) -> Iterator[tuple[str, str, Any, Any]]:
    fields = "".join(f"int32 f{n} = {n};" for n in range(1, size // 20))
    yield "a wide Protobuf message", "PROTOBUF", f'syntax = "proto3"; message M {{ {fields} }}', {}
    nested = "message M { " * 30 + "int32 x = 1; " + "}" * 30
    yield "deep Protobuf", "PROTOBUF", f'syntax = "proto3"; {nested}', {}
    recursive = 'syntax = "proto3"; message M { M m = 1; map<string, M> n = 2; }'
    value: Any = {}
    for _ in range(90):
        value = {"m": value}
    yield "recursive Protobuf", "PROTOBUF", recursive, value
    symbols = "".join(f"V{n} = {n};" for n in range(size // 12))
    yield (
        "Protobuf enum",
        "PROTOBUF",
        f'syntax = "proto3"; message M {{ E e = 1; }} enum E {{ {symbols} }}',
        {"e": "V1"},
    )
    yield "Protobuf brackets", "PROTOBUF", 'syntax = "proto3"; option (a) = ' + "{" * size, {}
    yield "Protobuf comments", "PROTOBUF", 'syntax = "proto3";' + "//\n" * (size // 3) + "message M {}", {}
