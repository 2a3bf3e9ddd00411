"""Sessions of the console: who has logged in, until when. Pure: the caller passes the time and random bytes.

A session is found by the hash of its id, so that the table itself has no id that a browser could use.
"""

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Final

from headrace.gateway.users.credentials import Password, Token

IDLE_S: Final = 30 * 60.0
ABSOLUTE_S: Final = 12 * 3600.0
MAX_SESSIONS: Final = 1000
MAX_OF_USER: Final = 20
_ID_BYTES: Final = 32


@dataclass(slots=True)
class Session:
    """One browser that has logged in."""

    credentials: Password | Token
    csrf_token: str = field(repr=False)
    began_s: float
    used_s: float

    def accepts(self, csrf_token: str) -> bool:
        """Return whether a request has the token that only pages of this session have."""
        return hmac.compare_digest(self.csrf_token.encode(), csrf_token.encode("utf-8", "replace"))


class Sessions:
    """All sessions of a gateway, least recently used first. They end with the gateway."""

    def __init__(
        self,
        *,
        idle_s: float = IDLE_S,
        absolute_s: float = ABSOLUTE_S,
        random_text: Callable[[int], str] = token_urlsafe,
    ) -> None:
        self._idle_s = idle_s
        self._absolute_s = absolute_s
        self._random_text = random_text
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, credentials: Password | Token, now_s: float, *, instead_of: str | None = None) -> str:
        """Return the id of a new session; the session that the browser had before ends."""
        if instead_of is not None:
            self.end(instead_of)
        for key, session in list(self._sessions.items()):
            if self._has_expired(session, now_s):
                del self._sessions[key]
        # There is room for a session: the user's own, or any, that was not used for the longest time ends.
        own = [key for key, session in self._sessions.items() if session.credentials.name == credentials.name]
        if len(own) >= MAX_OF_USER:
            del self._sessions[own[0]]
        if len(self._sessions) >= MAX_SESSIONS:
            self._sessions.popitem(last=False)
        session_id = self._random_text(_ID_BYTES)
        self._sessions[_key(session_id)] = Session(
            credentials, self._random_text(_ID_BYTES), began_s=now_s, used_s=now_s
        )
        return session_id

    def find(self, session_id: str, now_s: float) -> Session | None:
        """Return the session, which counts as used now; None if there is none or it has expired."""
        key = _key(session_id)
        session = self._sessions.get(key)
        if session is None:
            return None
        if self._has_expired(session, now_s):
            del self._sessions[key]
            return None
        session.used_s = now_s
        self._sessions.move_to_end(key)
        return session

    def end(self, session_id: str) -> None:
        self._sessions.pop(_key(session_id), None)

    def _has_expired(self, session: Session, now_s: float) -> bool:
        return now_s - session.used_s >= self._idle_s or now_s - session.began_s >= self._absolute_s


def _key(session_id: str) -> bytes:
    return hashlib.sha256(session_id.encode("utf-8", "replace")).digest()
