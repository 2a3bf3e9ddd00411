"""Tokens for OAUTHBEARER from an identity provider: the client-credentials grant (RFC 6749), or a file.

The settings are those of Kafka's OAuthBearerLoginCallbackHandler, with the client in sasl.jaas.config or in
sasl.oauthbearer.client.credentials.*; librdkafka's names (method=oidc) are understood as well.
"""

import base64
import binascii
import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from threading import Lock
from typing import Any, Final
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from headrace.client.errors import AuthenticationFailed, Unreachable, WrongSetting
from headrace.client.wire.tls import Tls
from headrace.security.sasl.jaas import jaas_options

URL: Final = "sasl.oauthbearer.token.endpoint.url"
_PORTS: Final = {"http": 80, "https": 443}
_TIMEOUT_MS: Final = 10_000
_MAX_BYTES: Final = 1024 * 1024  # of a response or file
_MAX_CACHED: Final = 64
_USED_OF_LIFETIME: Final = 0.8  # after which a token is replaced
_UNKNOWN_LIFETIME_S: Final = 300.0
_EXTENSION: Final = "extension_"  # of an option in sasl.jaas.config
_NAMES: Final = {  # in sasl.jaas.config, as settings of Java, and of librdkafka
    "id": ("clientId", "sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id"),
    "secret": (
        "clientSecret",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.secret",
    ),
    "scope": ("scope", "sasl.oauthbearer.scope"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEndpoint:
    """Requests tokens for a client; may be pickled, and called as confluent-kafka's oauth_cb."""

    url: str
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    extensions: tuple[tuple[str, str], ...] = ()
    encodes_header: bool = False  # sasl.oauthbearer.header.urlencode
    tls: Tls = field(default_factory=Tls)
    connect_s: float = _TIMEOUT_MS / 1000
    read_s: float = _TIMEOUT_MS / 1000

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "TokenEndpoint":
        """Read a client's settings; WrongSetting names the one that is wrong."""
        url = settings.get(URL, "").strip()
        parts = urlsplit(url)
        if parts.scheme not in {"file", *_PORTS} or not (parts.hostname or parts.scheme == "file"):
            said = "is missing, and oauth_cb too" if not url else f"is {url!r}"
            raise WrongSetting(URL, f"{said}: expected https://HOST/PATH, or file:///PATH of a token")
        jaas = jaas_options(settings.get("sasl.jaas.config", ""))
        given = jaas | dict(settings)
        found = {
            what: next((given[name] for name in names if given.get(name)), "")
            for what, names in _NAMES.items()
        }
        if parts.scheme != "file":
            for what in ("id", "secret"):
                if not found[what]:
                    java, newer, _ = _NAMES[what]
                    raise WrongSetting("sasl.jaas.config", f"has no {java}; {newer} is missing as well")
        return cls(
            url=url,
            client_id=found["id"],
            client_secret=found["secret"],
            scope=found["scope"],
            extensions=_extensions(settings, jaas),
            encodes_header=settings.get("sasl.oauthbearer.header.urlencode", "").strip().lower() == "true",
            tls=Tls.of({name: value for name, value in jaas.items() if name.startswith("ssl.")}),
            connect_s=_seconds(settings, "sasl.login.connect.timeout.ms"),
            read_s=_seconds(settings, "sasl.login.read.timeout.ms"),
        )

    def __call__(self, _config: str = "") -> tuple[str, float, str, dict[str, str]]:
        """Return a token, when it expires, the client, and the extensions (KIP-342)."""
        with _lock:
            token, replaced_s, expires_s = _tokens.get(self, ("", 0.0, 0.0))
            if time.time() >= replaced_s:
                token, expires_s = self.request()
                if len(_tokens) >= _MAX_CACHED:
                    _tokens.clear()
                now_s = time.time()
                _tokens[self] = (token, now_s + _USED_OF_LIFETIME * (expires_s - now_s), expires_s)
        return token, expires_s, self.client_id, dict(self.extensions)

    def request(self) -> tuple[str, float]:
        """Return a new token and when it expires; AuthenticationFailed, or Unreachable."""
        parts = urlsplit(self.url)
        if parts.scheme == "file":
            path, lifetime_s = unquote(parts.path), None
            try:
                with Path(path).open(encoding="utf-8") as file:
                    token = file.read(_MAX_BYTES).strip()
            except (OSError, UnicodeDecodeError) as error:
                why = getattr(error, "strerror", None) or "it is not text"
                raise AuthenticationFailed(f"{path} cannot be read as a token: {why.lower()}") from error
        else:
            answer = self._post(parts)
            token, lifetime_s = str(answer.get("access_token") or ""), answer.get("expires_in")
        if not token or any(each.isspace() for each in token):
            raise AuthenticationFailed(f"{_shown(parts)} gave no token")
        return token, _expiry_s(token, lifetime_s)

    def _post(self, parts: SplitResult) -> dict[str, Any]:
        grant = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        both = (self.client_id, self.client_secret)
        text = ":".join(quote(each, safe="") if self.encodes_header else each for each in both)
        headers = {
            "Accept": "application/json",
            "Authorization": f"Basic {base64.b64encode(text.encode()).decode()}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        connection = HTTPConnection(host, port, timeout=self.connect_s)
        if parts.scheme == "https":
            connection = HTTPSConnection(host, port, timeout=self.connect_s, context=self.tls.context())
        try:
            connection.connect()
            connection.sock.settimeout(self.read_s)
            connection.request("POST", target, urlencode(grant), headers)
            response = connection.getresponse()
            body = response.read(_MAX_BYTES)
        except ssl.SSLError as error:
            refusal = self.tls.refusal(error, _shown(parts))
            raise refusal or Unreachable(f"{_shown(parts)} gives no token: {error}") from error
        except (OSError, HTTPException) as error:
            raise Unreachable(f"{_shown(parts)} gives no token: {error}") from error
        finally:
            connection.close()
        return _parsed(_shown(parts), response.status, body)


# The tokens of this process: the token, when to replace it, and when it expires.
_tokens: dict[TokenEndpoint, tuple[str, float, float]] = {}
_lock: Final = Lock()


def _seconds(settings: Mapping[str, str], name: str) -> float:
    text = settings.get(name, str(_TIMEOUT_MS)).strip()
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise WrongSetting(name, f"is {text!r}: expected milliseconds")
    return int(text) / 1000


def _extensions(settings: Mapping[str, str], jaas: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    pairs = [
        each.split("=", 1) for each in settings.get("sasl.oauthbearer.extensions", "").split(",") if each
    ]
    if any(len(pair) != 2 for pair in pairs):
        raise WrongSetting("sasl.oauthbearer.extensions", "is not NAME=VALUE,NAME=VALUE")
    of_jaas = [
        (name.removeprefix(_EXTENSION), value) for name, value in jaas.items() if name.startswith(_EXTENSION)
    ]
    return tuple(of_jaas + [(name.strip(), value.strip()) for name, value in pairs])


def _shown(parts: SplitResult) -> str:
    """Return the address without the user, password and query that it may contain."""
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _parsed(url: str, status: int, body: bytes) -> dict[str, Any]:
    """Return the response of an identity provider; its text is not shown: it may have a token."""
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if status >= 500 or status == 429:
        raise Unreachable(f"{url} gives no token: it answers with status {status}")
    if status != 200:
        code = answer.get("error") if isinstance(answer, dict) else None
        said = f" ({code})" if isinstance(code, str) and code.isidentifier() else ""
        raise AuthenticationFailed(f"{url} refuses the client with status {status}{said}")
    if not isinstance(answer, dict):
        raise AuthenticationFailed(f"{url} gave no token: the response is not a JSON object")
    return answer


def _expiry_s(token: str, lifetime_s: object) -> float:
    """Return when a token expires: by its claim `exp`, or by what the identity provider said.

    The claims of a JWT are not verified here, which brokers do; an opaque token has none.
    """
    payload = token.partition(".")[2].partition(".")[0]
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, binascii.Error):
        claims = None
    expires_s = claims.get("exp") if isinstance(claims, dict) else None
    if isinstance(expires_s, int | float) and not isinstance(expires_s, bool):
        return float(expires_s)
    is_number = isinstance(lifetime_s, int | float) and not isinstance(lifetime_s, bool)
    return time.time() + (float(lifetime_s) if is_number else _UNKNOWN_LIFETIME_S)  # type: ignore[arg-type]
