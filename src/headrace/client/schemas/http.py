"""A schema registry's answers over HTTP: an object of JSON, a refusal in its words, or none."""

import base64
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlencode, urlsplit, urlunsplit

from headrace.client.errors import ClientError, Unreachable, lowered

TIMEOUT_S: Final = 30.0
_JSON: Final = "application/vnd.schemaregistry.v1+json"
INCOMPATIBLE: Final = 409
_NOT_FOUND: Final = 404


class RegistryError(ClientError):
    """The registry refused; `code` is its own number for why: 40401 is a subject that is not there."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Http:
    """Requests to one registry."""

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S, advice: str = "") -> None:
        """`advice` is what to do if nobody answers."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ClientError(f"{url}: expected the registry's address, such as http://127.0.0.1:8080")
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], path=parts.path.rstrip("/"))
        self._url = urlunsplit(bare._replace(query="", fragment=""))
        self._headers = {"Accept": _JSON, "Content-Type": _JSON, **_authorization(parts)}
        self._timeout_s = timeout_s
        self._advice = f" ({advice})" if advice else ""

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """What the registry answers; RegistryError if that is a refusal, Unreachable if there is nothing."""
        url = f"{self._url}{path}" + (f"?{urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, self._headers, method=method)  # noqa: S310  see __init__
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from error
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"no registry answers at {self._url}: {_why(error)}{self._advice}") from error
        except ValueError as error:
            raise self._no_registry() from error

    def _refusal(self, error: urllib.error.HTTPError) -> ClientError:
        try:
            with error:
                said = json.load(error)
            return RegistryError(_sentence(str(said["message"])), int(said["error_code"]))
        except (ValueError, KeyError, TypeError):
            if error.code == _NOT_FOUND:
                return self._no_registry()
            return RegistryError(f"{self._url} answers {error.code} {error.reason}", error.code * 100)

    def _no_registry(self) -> ClientError:
        return ClientError(f"what answers at {self._url} is no schema registry")


def _authorization(parts: SplitResult) -> dict[str, str]:
    if parts.username is None:
        return {}
    names = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(names.encode()).decode()}"}


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return _sentence(getattr(reason, "strerror", None) or str(reason) or type(reason).__name__)


def _sentence(text: str) -> str:
    """As ours begin and end: most are put behind a colon."""
    return lowered(text).rstrip(".")
