"""The delegation tokens of the cluster in ZooKeeper, and the SCRAM credentials that follow from them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Final

from headrace.broker.membership.change_notifications import ChangeNotifications
from headrace.coordination.session import Conflict, ZooKeeperSession
from headrace.security import delegation_tokens
from headrace.security.sasl.scram import ALGORITHMS, ScramCredential, TokenAccount

READ_TOGETHER: Final = 64
MAX_CACHED_CREDENTIALS: Final = 10_000

logger = logging.getLogger(__name__)


class TokenStore:
    """Keeps the tokens of ZooKeeper in memory. Every broker has a store; each may change tokens.

    A credential takes milliseconds to compute, so the broker computes it when a client first uses the token.
    """

    def __init__(
        self,
        session: ZooKeeperSession,
        secret_key: bytes,
        *,
        now_ms: Callable[[], int],
        changed: Callable[[str], None],
    ) -> None:
        """Call `changed` with TOKEN_CHANGES when `load_changes` has to be called."""
        self._session = session
        self._secret_key = secret_key
        self._now_ms = now_ms
        self._tokens: dict[str, delegation_tokens.DelegationToken] = {}
        self._ids: dict[bytes, str] = {}  # by HMAC
        self._credentials: dict[tuple[str, str], ScramCredential] = {}  # by mechanism and token id
        prefix = f"{delegation_tokens.TOKEN_CHANGES}/{delegation_tokens.CHANGE_PREFIX}"
        self._notifications = ChangeNotifications(
            session, prefix, partial(changed, delegation_tokens.TOKEN_CHANGES)
        )

    def __iter__(self) -> Iterator[delegation_tokens.DelegationToken]:
        return iter(list(self._tokens.values()))

    @property
    def loaders(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the function that reads what has changed, by the path of the notifications."""
        return {delegation_tokens.TOKEN_CHANGES: self._load_changes}

    async def load(self) -> None:
        """Read all tokens for the first time, and watch for changes from then on."""
        for path in (delegation_tokens.TOKENS, delegation_tokens.TOKEN_CHANGES):
            await self._session.ensure(path)
        await self._notifications.skip()
        await self._load_all()

    def hmac(self, token: delegation_tokens.DelegationToken) -> bytes:
        return delegation_tokens.token_hmac(self._secret_key, token.token_id)

    def find(self, hmac: bytes) -> delegation_tokens.DelegationToken:
        """Return the token with this HMAC, or raise TokenNotFound."""
        token_id = self._ids.get(hmac)
        if token_id is None:
            raise delegation_tokens.TokenNotFound(
                "no delegation token has this HMAC (DELEGATION_TOKEN_NOT_FOUND)"
            )
        return self._tokens[token_id]

    def account(self, mechanism: str, token_id: str) -> TokenAccount | None:
        """Return what a client that authenticates with a token has to prove, and who it is then."""
        token = self._tokens.get(token_id)
        if token is None or token.is_expired(self._now_ms()):
            return None
        credential = self._credentials.get((mechanism, token_id))
        if credential is None:
            password = delegation_tokens.token_password(self._secret_key, token_id)
            credential = ScramCredential.of_password(mechanism, password)
            if len(self._credentials) >= MAX_CACHED_CREDENTIALS:
                del self._credentials[next(iter(self._credentials))]
            self._credentials[mechanism, token_id] = credential
        return TokenAccount(credential, token.owner, min(token.expiry_ms, token.max_ms))

    async def put(self, token: delegation_tokens.DelegationToken) -> None:
        """Store a token, new or changed. It is valid on this broker at once."""
        path = f"{delegation_tokens.TOKENS}/{token.token_id}"
        if token.token_id in self._tokens:
            await self._session.set(path, token.encode())
        else:
            await self._session.create(path, token.encode())
        self._remember(token)
        await self._notifications.notify(token.token_id.encode(), self._now_ms())

    async def delete(self, token_id: str) -> None:
        try:
            await self._session.delete(f"{delegation_tokens.TOKENS}/{token_id}")
        except Conflict:
            logger.debug("delegation token %s is already deleted", token_id)
        # Forgotten last: if other brokers cannot be told, the client's next attempt finds the token again.
        await self._notifications.notify(token_id.encode(), self._now_ms())
        self._forget(token_id)

    async def delete_expired(self) -> None:
        """Delete the tokens that have expired; the controller does so now and then."""
        now_ms = self._now_ms()
        for token in self:
            if token.is_expired(now_ms):
                logger.info("deleting expired delegation token %s of %s", token.token_id, token.owner)
                await self.delete(token.token_id)

    async def _load_changes(self) -> None:
        async for notification in self._notifications.new():
            if notification is None:
                await self._load_all()
            else:
                await self._load(notification.data.decode())

    async def _load_all(self) -> None:
        """Read all tokens, some at a time, and forget those that are gone."""
        ids = sorted({*await self._session.children(delegation_tokens.TOKENS), *self._tokens})
        for first in range(0, len(ids), READ_TOGETHER):
            await asyncio.gather(*map(self._load, ids[first : first + READ_TOGETHER]))

    async def _load(self, token_id: str) -> None:
        found = await self._session.get(f"{delegation_tokens.TOKENS}/{token_id}")
        try:
            token = None if found is None else delegation_tokens.DelegationToken.decode(found.data)
        except delegation_tokens.UnreadableToken:
            logger.exception("delegation token %s in ZooKeeper is not readable: it is not valid", token_id)
            token = None
        if token is None or token.token_id != token_id:
            self._forget(token_id)
        else:
            self._remember(token)

    def _remember(self, token: delegation_tokens.DelegationToken) -> None:
        self._tokens[token.token_id] = token
        self._ids[self.hmac(token)] = token.token_id

    def _forget(self, token_id: str) -> None:
        token = self._tokens.pop(token_id, None)
        if token is not None:
            del self._ids[self.hmac(token)]
        for mechanism in ALGORITHMS:
            self._credentials.pop((mechanism, token_id), None)
