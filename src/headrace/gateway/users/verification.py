"""Asking brokers whether they accept a user's credentials. Calls block, so they are for threads."""

import time
from dataclasses import replace
from threading import Lock
from typing import Final

from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.client.wire.security import Security
from headrace.gateway.configuration import GatewaySettings
from headrace.gateway.reach import CLIENT_ID, SILENCE_S
from headrace.gateway.users.credentials import PASSWORD_MECHANISMS, Certificate, Credentials, sasl_of
from headrace.gateway.users.delegation import Delegation
from headrace.gateway.users.logins import BrokerLogin
from headrace.protocol.schema.sasl_handshake import SaslHandshakeRequest

OFFERED_S: Final = 60.0  # for which the mechanisms that brokers offer are remembered


class Verifier:
    def __init__(self, settings: GatewaySettings, own: Brokers) -> None:
        """`own` has the connections of the gateway itself."""
        self._settings = settings
        self._delegation = Delegation(own, settings.security, self._brokers, self.offered)
        self._lock = Lock()
        self._offered: tuple[float, tuple[str, ...]] | None = None

    def accept(self, credentials: Credentials) -> BrokerLogin:
        """Return a login that brokers accept for these credentials, tried just now.

        AuthenticationFailed if they do not accept them, BadCredentials if they cannot, CannotActFor if a
        certificate is all there is and brokers do not let the gateway act for it, Unreachable if no broker
        answers.
        """
        if isinstance(credentials, Certificate):
            return self._delegation.login(credentials.principal)
        sasl = sasl_of(credentials, self.offered(), self._settings.password_mechanism)
        login = BrokerLogin(replace(self._settings.security, sasl=sasl), self._brokers)
        login.verify()
        return login

    def accepts_passwords(self) -> bool:
        """Return whether the brokers offer a mechanism for a user with a password."""
        return not self.offered() or any(each in self.offered() for each in PASSWORD_MECHANISMS)

    def offered(self) -> tuple[str, ...]:
        with self._lock:
            known = self._offered
        if known is not None and time.monotonic() - known[0] < OFFERED_S:
            return known[1]
        asked = SaslHandshakeRequest(mechanism=PASSWORD_MECHANISMS[0])
        with self._brokers(replace(self._settings.security, sasl=None)) as brokers:
            found = tuple(brokers.first(lambda at: at.ask(asked), SILENCE_S).mechanisms)
        with self._lock:
            self._offered = time.monotonic(), found
        return found

    def _brokers(self, security: Security) -> Brokers:
        to = ConnectionSettings(self._settings.bootstrap, security)
        return Brokers(to, answer_s=SILENCE_S, client_id=CLIENT_ID)
