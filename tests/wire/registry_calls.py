"""A registry as curl sees it: methods and paths in, statuses and JSON out."""

import json
from http.client import HTTPConnection, HTTPResponse
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class Said(NamedTuple):
    """What a request was answered with."""

    status: int
    body: Any
    media_type: str

    @property
    def code(self) -> int | None:
        """The number of the error, if it is one that says what it is."""
        if not isinstance(self.body, dict) or not self.body.get("message"):
            return None
        return int(self.body["error_code"])


class RegistryCalls:
    """Asks one gateway; paths are sent as they are written here, byte for byte."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url).netloc

    def get(self, path: str, **headers: str) -> Said:
        return self.ask("GET", path, None, headers)

    def post(self, path: str, body: object) -> Said:
        return self.ask("POST", path, body, {})

    def put(self, path: str, body: object) -> Said:
        return self.ask("PUT", path, body, {})

    def delete(self, path: str) -> Said:
        return self.ask("DELETE", path, None, {})

    def ask(self, method: str, path: str, body: object, headers: dict[str, str]) -> Said:
        connection = HTTPConnection(self._address, timeout=60)
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, data, headers)
            return _said(connection.getresponse())
        finally:
            connection.close()

    def register(self, subject: str, schema: object, **more: object) -> Said:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return self.post(f"/subjects/{subject}/versions", {"schema": text, **more})


def _said(answer: HTTPResponse) -> Said:
    data = answer.read()
    try:
        body = json.loads(data)
    except ValueError:
        body = data.decode()
    return Said(answer.status, body, (answer.headers["content-type"] or "").partition(";")[0])
