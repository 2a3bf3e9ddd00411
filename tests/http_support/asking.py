"""A gateway as its tests ask it; not in `tests/http`, whose name Python has for something else."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import requests

TIMEOUT_S: Final = 40.0
WAIT_S: Final = 20.0
_numbers = count()


class Event(NamedTuple):
    """A server-sent event: its kind, the id it leaves behind, and what it says."""

    kind: str
    id: str
    data: Any


class Asking:
    """Asks a gateway. Paths are under its root; bodies are JSON."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._session = requests.Session()

    def close(self) -> None:
        self._session.close()

    def __call__(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json", **headers: str
    ) -> requests.Response:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            given["content-type"] = kind
        return self._session.request(method, self._at(path), data=data, headers=given, timeout=TIMEOUT_S)

    def get(self, path: str, **headers: str) -> Any:
        """The answer, which is to be a good one."""
        return self._good(self("GET", path, **headers))

    def post(self, path: str, body: Any = None, *, kind: str = "application/json") -> Any:
        return self._good(self("POST", path, body, kind=kind))

    def patch(self, path: str, body: Any) -> Any:
        return self._good(self("PATCH", path, body))

    def delete(self, path: str, body: Any = None) -> Any:
        return self._good(self("DELETE", path, body))

    def refused(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json", **headers: str
    ) -> tuple[int, int, str]:
        """The status, number and sentence of a refusal."""
        answer = self(method, path, body, kind=kind, **headers)
        assert answer.headers["content-type"] == "application/json", answer.text
        said = answer.json()
        assert set(said) == {"error_code", "message"}, said
        assert said["message"], said
        return answer.status_code, said["error_code"], said["message"]

    def topic(
        self, name: str = "topic", partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> str:
        """A new topic, with a name of its own."""
        made = f"{name}-{next(_numbers)}"
        body = {"name": made, "partitions": partitions, "configs": dict(configs or {})}
        self.post("/api/v1/topics", body)
        return made

    def write(self, topic: str, *values: Any, **fields: Any) -> list[tuple[int, int]]:
        """Messages with these values: where each is."""
        messages = [{"value": value, **fields} for value in values]
        answer = self.post(f"/api/v1/topics/{topic}/messages", {"messages": messages})
        return [(each["partition"], each["offset"]) for each in answer["messages"]]

    def values(self, topic: str, query: str = "") -> list[Any]:
        """The values of the messages that a search finds."""
        return [each["value"] for each in self.get(f"/api/v1/topics/{topic}/messages?{query}")["messages"]]

    @contextmanager
    def tail(self, topic: str, query: str = "", **headers: str) -> Iterator[Iterator[Event]]:
        """The events of a tail, for as long as one stays; those of clients that have gone make room first."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        address = self._at(f"/api/v1/topics/{topic}/tail?{query}")

        def opened() -> requests.Response | None:
            answer = requests.get(address, headers=given, stream=True, timeout=TIMEOUT_S)
            if answer.status_code == requests.codes.too_many_requests:
                answer.close()
                return None
            return answer

        with wait_until(opened, "there is no room for a tail") as answer:
            assert answer.status_code == requests.codes.ok, answer.text
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield _events(answer)

    def events(self, path: str) -> Iterator[Event]:
        """The events of a stream that ends by itself."""
        with requests.get(self._at(path), stream=True, timeout=TIMEOUT_S) as answer:
            assert answer.status_code == requests.codes.ok, answer.text
            yield from _events(answer)

    def _at(self, path: str) -> str:
        return path if path.startswith("http://") else self.url + path

    @staticmethod
    def _good(answer: requests.Response) -> Any:
        assert answer.ok, f"{answer.status_code} {answer.text}"
        return answer.json() if answer.content else None


def _events(answer: requests.Response) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for data in answer.iter_lines(chunk_size=2**16):
        line = data.decode()
        name, _, value = line.partition(": ")
        if line and not line.startswith(":"):
            fields[name] = value
        elif not line and "data" in fields:
            yield Event(fields["event"], fields.get("id", ""), json.loads(fields["data"]))
            fields = {"id": fields.get("id", "")}


def v2(embedded: str) -> str:
    """The media type of records in a format."""
    return f"application/vnd.kafka.{embedded}.v2+json"


def quoted(text: str) -> str:
    return quote(text, safe="")


def wait_until(is_so: Callable[[], Any], what: str) -> Any:
    """What `is_so` gives once that is something."""
    deadline = time.monotonic() + WAIT_S
    while not (found := is_so()):
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
    return found
