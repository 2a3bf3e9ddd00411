"""The keys with which the tokens of OAUTHBEARER are signed: a JWKS document, in a file or at a URL."""

import asyncio
import json
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from headrace.broker.settings.setting import InvalidSetting

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

SETTING: Final = "sasl.oauthbearer.jwks.endpoint.url"
MAX_BYTES: Final = 1024 * 1024
TIMEOUT_S: Final = 10.0
RETRY_S: Final = 10.0  # between attempts to load keys that are missing

logger = logging.getLogger(__name__)


class TokenKeys:
    """The newest keys of one document. Keys that were loaded stay in use while it cannot be loaded."""

    def __init__(self, url: str, refresh_s: float) -> None:
        if urlsplit(url).scheme not in {"file", "https", "http"}:
            raise InvalidSetting(f"{SETTING}={url}: expected https://... or file:///...")
        self.url = url
        self.keys: KeySet | None = None
        self._refresh_s = refresh_s
        self._due_s = 0.0
        self._tried_s = float("-inf")

    def want(self) -> None:
        """Load the document soon: it may have a new key."""
        self._due_s = min(self._due_s, self._tried_s + RETRY_S)

    async def refresh(self) -> None:
        """Load the document if that is due."""
        now_s = time.monotonic()
        if now_s < self._due_s:
            return
        self._tried_s, self._due_s = now_s, now_s + self._refresh_s
        try:
            self.keys = await asyncio.to_thread(load_keys, self.url)
        except (OSError, ValueError) as error:
            self._due_s = now_s + RETRY_S
            logger.warning("%s: the keys of %s cannot be loaded: %s", SETTING, self.url, error)


def load_keys(url: str) -> "KeySet":
    """Return the keys of a JWKS document; OSError or ValueError if that is not possible."""
    from urllib.error import URLError  # noqa: PLC0415  few brokers need it
    from urllib.request import Request, url2pathname, urlopen  # noqa: PLC0415

    import joserfc.jwt  # noqa: F401, PLC0415  in this thread: it is slow to import, and validation needs it
    from joserfc.errors import JoseError  # noqa: PLC0415
    from joserfc.jwk import KeySet  # noqa: PLC0415

    parts = urlsplit(url)
    if parts.scheme == "file":
        data = Path(url2pathname(parts.path)).read_bytes()
    else:
        request = Request(url, headers={"Accept": "application/json"})  # noqa: S310  checked above
        try:
            with urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
                data = response.read(MAX_BYTES + 1)
        except URLError as error:
            raise OSError(str(error.reason)) from error
    if len(data) > MAX_BYTES:
        raise ValueError(f"the document has more than {MAX_BYTES} bytes")
    try:
        return KeySet.import_key_set(json.loads(data))
    except (JoseError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is not a JSON Web Key Set: {error}") from error
