"""`headrace schema` against the registry that `headrace up` runs."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from cli.command import Command, Result
from support.process import UpProcess

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
ITEM = {"name": "item", "type": "string"}


class Registry:
    """Runs `headrace schema` on one registry; files are in a directory of the test's."""

    def __init__(self, up: UpProcess, directory: Path) -> None:
        self._headrace = Command(up.bootstrap)
        self._environment = {"HEADRACE_REGISTRY": up.http}
        self._directory = directory

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Result:
        return self._headrace("schema", *arguments, stdin=stdin, environment=self._environment)

    def ok(self, *arguments: str) -> Any:
        result = self(*arguments, "--json")
        assert (result.status, result.err) == (0, ""), result
        return result.json

    def file(self, name: str, content: object) -> str:
        path = self._directory / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def order(self, *more: object) -> str:
        return self.file("order.avsc", ORDER | {"fields": [*ORDER["fields"], *more]})


@pytest.fixture
def registry(up: UpProcess, tmp_path: Path) -> Registry:
    return Registry(up, tmp_path)


def test_a_subject_from_its_first_version_to_its_end(registry: Registry) -> None:
    first = registry.ok("register", "life-value", registry.order())
    assert (first["version"], first["type"]) == (1, "AVRO")
    assert registry.ok("register", "life-value", registry.order()) == first
    second = registry.ok("register", "life-value", registry.order(ITEM | {"default": "tea"}))
    assert second["version"] == 2

    assert [each["version"] for each in registry.ok("list", "life-value")] == [1, 2]
    assert [each["id"] for each in registry.ok("list", "--prefix", "life-")] == [second["id"]]
    assert json.loads(registry("get", "life-value", "--version", "1").text) == ORDER
    assert json.loads(registry("get", "--id", str(second["id"]), "--raw").text)["fields"][1]["name"] == "item"

    assert registry.ok("delete", "life-value", "--version", "latest", "--yes")["deleted"] == [2]
    gone = registry.ok("delete", "life-value", "--permanent", "--yes")
    assert (gone["permanent"], gone["deleted"][0]) == (True, 1)
    assert registry.ok("list", "--prefix", "life-", "--deleted") == []


def test_what_does_not_fit_is_told_before_it_is_tried(registry: Registry) -> None:
    registry.ok("register", "fit-value", registry.order())
    fits = registry("check", "fit-value", registry.order(ITEM | {"default": ""}))
    assert (fits.status, fits.text.split(maxsplit=1)[1]) == (0, "can be the next version of fit-value\n")
    refused = registry("check", "fit-value", registry.order(ITEM))
    assert refused.status == 1
    assert "'item'" in refused.text
    assert "oldSchema" not in refused.text
    assert refused.err.endswith("cannot be the next version of fit-value: 1 reason\n")
    machine = registry("check", "fit-value", registry.order(ITEM), "--json")
    assert (machine.status, machine.json["compatible"]) == (1, False)
    registering = registry("register", "fit-value", registry.order(ITEM))
    assert registering.status == 1
    tried = registering.complaint
    assert "cannot be the next version of fit-value: " in tried
    assert "'item'" in tried
    assert "oldSchema" not in tried
    assert "errorType" not in tried
    assert [each["version"] for each in registry.ok("list", "fit-value")] == [1]


def test_other_types_references_and_the_standard_input(registry: Registry) -> None:
    line = registry.file("line.proto", 'syntax = "proto3"; message Line { string sku = 1; }')
    basket = registry.file(
        "basket.proto", 'syntax = "proto3"; import "line.proto"; message Basket { repeated Line lines = 1; }'
    )
    registry.ok("register", "line", line)
    assert registry("register", "basket", basket).status == 1
    made = registry.ok("register", "basket", basket, "--reference", "line.proto=line:1")
    assert (made["type"], made["references"]) == (
        "PROTOBUF",
        [{"name": "line.proto", "subject": "line", "version": 1}],
    )
    used = registry("delete", "line", "--yes")
    assert used.status == 1
    piped = registry("register", "piped", "-", "--type", "json", stdin=b'{"type": "object"}')
    assert (piped.status, piped.text.startswith("piped: version 1, id ")) == (0, True)


def test_a_level_and_a_mode_are_a_subjects_own_or_everybodys(registry: Registry) -> None:
    assert registry.ok("config")["compatibility"] == "BACKWARD"
    assert registry.ok("config", "ruled", "--set", "full")["compatibility"] == "FULL"
    assert registry("config", "ruled").text == "ruled: FULL\n"
    assert registry.ok("config", "ruled", "--unset")["compatibility"] == "BACKWARD"
    assert registry.ok("mode", "ruled", "--set", "READONLY")["mode"] == "READONLY"
    closed = registry("register", "ruled", registry.order())
    assert (closed.status, "read-only" in closed.complaint) == (1, True)
    for _ in range(2):  # nothing to unset is nothing wrong
        assert registry.ok("mode", "ruled", "--unset")["mode"] == "READWRITE"
        assert registry.ok("config", "ruled", "--unset")["compatibility"] == "BACKWARD"


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        ("get nowhere", 1, "subject 'nowhere' not found"),
        ("get --id 987654", 1, "987654 not found"),
        ("get", 2, "Give a subject or --id."),
        ("get nowhere --version soon", 2, "version soon: expected a number such as 1, or latest"),
        ("delete nowhere", 2, "Confirmation needs a terminal: give --yes"),
        ("mode --unset", 2, "--unset needs a subject"),
        ("config --set FULL --unset", 2, "contradict each other"),
        ("list --registry ftp://here", 1, "ftp://here: expected the registry's address"),
        ("list --registry http://127.0.0.1:1", 1, "no registry answers at http://127.0.0.1:1"),
        (
            "list --registry http://127.0.0.1:1",
            1,
            "(start `headrace up`, or give the address of a registry with --registry",
        ),
    ],
)
def test_what_cannot_be_is_one_sentence(
    registry: Registry, arguments: str, status: int, sentence: str
) -> None:
    refused = registry(*arguments.split())
    assert refused.status == status, refused
    assert sentence in refused.complaint


def test_a_subject_without_a_name_is_a_misuse(registry: Registry) -> None:
    for arguments in (["register", "", registry.order()], ["config", ""]):
        refused = registry(*arguments)
        assert refused.status == 2
        assert "The name of the subject is empty" in refused.complaint


class _Stranger(BaseHTTPRequestHandler):
    """Some other program: it answers with a page, and to a name and a password with a registry's refusal."""

    def do_GET(self) -> None:
        known = self.headers.get("Authorization") == "Basic YW5uYTpzZWNyZXQ="
        body = b'{"error_code": 50001, "message": "Out of order."}' if known else b"<h1>Welcome</h1>"
        self.send_response(500 if known else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Say nothing."""


def test_another_program_is_no_registry_and_a_password_is_sent_along(registry: Registry) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Stranger) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        page = registry("list", "--registry", f"http://127.0.0.1:{port}")
        refusal = registry("list", "--registry", f"http://anna:secret@127.0.0.1:{port}")
        server.shutdown()
    assert page.complaint == f"the server at http://127.0.0.1:{port} is not a schema registry"
    assert refusal.complaint == "out of order"
