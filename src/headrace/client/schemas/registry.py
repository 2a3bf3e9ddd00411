"""The client of a schema registry with Confluent's HTTP API: what `headrace schema` does.

Registry("http://127.0.0.1:8080").register("orders-value", Schema(text='"string"'))
"""

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

from headrace.client.errors import ClientError, Unreachable, lowered
from headrace.client.wire.connection import Address, speaks_kafka

AVRO: Final = "AVRO"
LATEST: Final = "latest"
LEVELS: Final = (
    "NONE",
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
)
MODES: Final = ("READWRITE", "READONLY", "IMPORT")

TIMEOUT_S: Final = 30.0
_JSON: Final = "application/vnd.schemaregistry.v1+json"
INCOMPATIBLE: Final = 409
_NOT_FOUND: Final = 404
_PORTS: Final = {"http": 80, "https": 443}
_NO_HTTP: Final = (ConnectionError, TimeoutError, http.client.HTTPException)  # what a broker's port leads to
_SUBJECT_SOFT_DELETED: Final = 40404
_VERSION_SOFT_DELETED: Final = 40406
_NOTHING_OF_ITS_OWN: Final = {40401, 40408, 40409}  # no config or mode; some registries: no subject


class RegistryError(ClientError):
    """The registry refused a request; `code` is its error code, such as 40401: subject not found."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A reference to another schema: the name in the schema, and its subject and version."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A schema that need not be registered."""

    text: str
    type: str = AVRO
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A registered schema; one that was read by its id has no subject and version."""

    id: int
    type: str
    schema: str
    references: tuple[Reference, ...] = ()
    subject: str | None = None
    version: int | None = None


class RegistryClient:
    """Every call waits for the response; RegistryError if it is an error, Unreachable if there is none."""

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = TIMEOUT_S,
        advice: str = "",
        user_info: str = "",
        context: ssl.SSLContext | None = None,
    ) -> None:
        """`url` may have a user and password, http://user:password@host:port, in place of `user_info`.

        `context` is for HTTPS. `advice` is added to the message of Unreachable.
        """
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ClientError(f"{url}: expected the registry's address, such as http://127.0.0.1:8080")
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], path=parts.path.rstrip("/"))
        self._url = urlunsplit(bare._replace(query="", fragment=""))
        self._address = Address(parts.hostname, parts.port or _PORTS[parts.scheme])
        in_url = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
        names = in_url or user_info
        self._headers = {"Accept": _JSON, "Content-Type": _JSON}
        if names:
            self._headers["Authorization"] = f"Basic {base64.b64encode(names.encode()).decode()}"
        self._context = context if parts.scheme == "https" else None
        self._timeout_s = timeout_s
        self._advice = f" ({advice})" if advice else ""

    @property
    def url(self) -> str:
        """The address, without a password."""
        return self._url

    # -- looking -------------------------------------------------------------------------------

    def subjects(self, prefix: str = "", *, deleted: bool = False) -> list[str]:
        found = self._ask("GET", "/subjects", query=_query(subjectPrefix=prefix or None, deleted=deleted))
        return sorted(map(str, found))

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        return sorted(self._ask("GET", f"/subjects/{_part(subject)}/versions", query=_query(deleted=deleted)))

    def get(self, subject: str, version: int | str = LATEST, *, deleted: bool = False) -> Registered:
        path = f"/subjects/{_part(subject)}/versions/{version}"
        return _registered(self._ask("GET", path, query=_query(deleted=deleted)))

    def by_id(self, schema_id: int) -> Registered:
        """Return the schema of this id, in whichever subject."""
        return _registered(self._ask("GET", f"/schemas/ids/{schema_id}"), schema_id)

    def by_guid(self, guid: str) -> Registered:
        """Return the schema of this GUID, which is the same in every registry."""
        return _registered(self._ask("GET", f"/schemas/guids/{_part(guid)}"))

    def check(self, subject: str, schema: Schema, version: int | str | None = None) -> list[str]:
        """Return why `schema` is incompatible with `subject`; an empty list if it is compatible.

        It is compared with the versions of the subject's compatibility level, or with `version` only.
        """
        path = f"/compatibility/subjects/{_part(subject)}/versions"
        found = self._ask(
            "POST", path if version is None else f"{path}/{version}", _body(schema), {"verbose": "true"}
        )
        if found["is_compatible"]:
            return []
        return [str(each) for each in found.get("messages", ())] or ["the registry gives no reason"]

    # -- changing ------------------------------------------------------------------------------

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> Registered:
        """Register the schema as the next version of a subject, unless it is registered; return it."""
        path, query = f"/subjects/{_part(subject)}", _query(normalize=normalize)
        self._ask("POST", f"{path}/versions", _body(schema), query)
        return _registered(self._ask("POST", path, _body(schema), query))

    def delete(self, subject: str, version: int | str | None = None, *, permanent: bool = False) -> list[int]:
        """Delete a subject, or one version of it, and return the deleted versions.

        Deleted schemas can still be read by their ids, unless they are deleted with `permanent`.
        """
        path = f"/subjects/{_part(subject)}" + ("" if version is None else f"/versions/{version}")
        try:
            gone = self._ask("DELETE", path)
        except RegistryError as error:
            if not permanent or error.code not in {_SUBJECT_SOFT_DELETED, _VERSION_SOFT_DELETED}:
                raise
            gone = []  # it is deleted already, but not permanently
        if permanent:
            number = gone if version == LATEST and gone else version  # `latest` is another version now
            place = f"/subjects/{_part(subject)}" + ("" if version is None else f"/versions/{number}")
            gone = self._ask("DELETE", place, query={"permanent": "true"})
        return sorted(gone) if isinstance(gone, list) else [int(gone)]

    # -- config and mode -----------------------------------------------------------------------

    def level(self, subject: str | None = None) -> str:
        """Return the compatibility level of a subject, its own or the global one; or the global one."""
        found = self._ask("GET", _of("config", subject), query={"defaultToGlobal": "true"})
        return str(found["compatibilityLevel"])

    def set_level(self, level: str, subject: str | None = None) -> str:
        return str(self._ask("PUT", _of("config", subject), {"compatibility": level})["compatibility"])

    def unset_level(self, subject: str | None = None) -> None:
        """Reset the level of a subject to the global one, or the global one to the registry's default."""
        self._unset("config", subject)

    def mode(self, subject: str | None = None) -> str:
        """Return the mode of a subject, or the global one: READWRITE, READONLY or IMPORT."""
        return str(self._ask("GET", _of("mode", subject), query={"defaultToGlobal": "true"})["mode"])

    def set_mode(self, mode: str, subject: str | None = None, *, force: bool = False) -> str:
        """Set a mode; IMPORT, for schemas with given ids, needs an empty subject, or `force`."""
        return str(self._ask("PUT", _of("mode", subject), {"mode": mode}, _query(force=force))["mode"])

    def unset_mode(self, subject: str) -> None:
        self._unset("mode", subject)

    def _unset(self, what: str, subject: str | None) -> None:
        try:
            self._ask("DELETE", _of(what, subject))
        except RegistryError as error:
            if error.code not in _NOTHING_OF_ITS_OWN:
                raise

    # -- requests ------------------------------------------------------------------------------

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """Return the registry's answer; RegistryError if it refuses, Unreachable if it does not answer."""
        url = f"{self._url}{path}" + (f"?{urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, self._headers, method=method)  # noqa: S310  see __init__
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s, context=self._context) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from error
        except (OSError, http.client.HTTPException) as error:
            if isinstance(getattr(error, "reason", error), _NO_HTTP) and speaks_kafka(*self._address):
                raise ClientError(
                    f"{self._address} speaks Kafka's protocol, not HTTP: give the address of the schema "
                    "registry, which is that of the console, such as http://127.0.0.1:8080"
                ) from error
            reason = getattr(error, "reason", error)
            why = _sentence(getattr(reason, "strerror", None) or str(reason) or type(reason).__name__)
            raise Unreachable(f"no registry answers at {self._url}: {why}{self._advice}") from error
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
        return ClientError(f"the server at {self._url} is not a schema registry")


def _registered(found: Mapping[str, Any], schema_id: int = 0) -> Registered:
    return Registered(
        id=found.get("id", schema_id),
        type=found.get("schemaType", AVRO),
        schema=found["schema"],
        references=tuple(
            Reference(name=each["name"], subject=each["subject"], version=each["version"])
            for each in found.get("references") or ()
        ),
        subject=found.get("subject"),
        version=found.get("version"),
    )


def _body(schema: Schema) -> dict[str, object]:
    references: Sequence[object] = [
        {"name": each.name, "subject": each.subject, "version": each.version} for each in schema.references
    ]
    body: dict[str, object] = {"schema": schema.text}
    if schema.type != AVRO:
        body["schemaType"] = schema.type
    return body | ({"references": references} if references else {})


def _query(**flags: str | bool | None) -> dict[str, str]:
    """Return the flags that are set: an old registry may not know the others."""
    return {name: "true" if value is True else str(value) for name, value in flags.items() if value}


def _of(what: str, subject: str | None) -> str:
    return f"/{what}" if subject is None else f"/{what}/{_part(subject)}"


def _part(name: str) -> str:
    return quote(name, safe="")


def _sentence(text: str) -> str:
    """Return a message without capital and period, to follow a colon."""
    return lowered(text).rstrip(".")
