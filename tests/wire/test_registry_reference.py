"""A pipeline's registry whose password is a reference: the registry gets the password, and nobody else."""

import base64
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from headrace.client.errors import WrongSetting
from headrace.client.schemas.registry import RegistryError
from headrace.pipeline.registry import Registry
from headrace.tables.registry.client import Schemas


def test_the_registry_gets_the_password_that_a_reference_refers_to(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append(self.headers["Authorization"])
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    monkeypatch.setenv("REGISTRY_PASSWORD", "wonder%2Fland")
    with HTTPServer(("127.0.0.1", 0), Handler) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(server.handle_request)
        at = f"127.0.0.1:{server.server_port}"
        registry = Registry(f"http://spark:${{env:REGISTRY_PASSWORD}}@{at}")
        with pytest.raises(RegistryError) as refused:
            Schemas(registry.url).version("orders-value", "latest")

    assert got == ["Basic " + base64.b64encode(b"spark:wonder/land").decode()]
    assert registry.address == f"http://{at}"
    assert "wonder" not in f"{registry!r} {registry.url} {refused.value}"


def test_a_reference_to_nothing_is_named() -> None:
    with pytest.raises(
        WrongSetting, match=r"Registry\.url refers to \$\{env:ABSENT_HERE\}, which is not set"
    ):
        Schemas("http://spark:${env:ABSENT_HERE}@127.0.0.1:1")
