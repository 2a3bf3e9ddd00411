"""Whether a listener may present another certificate than now, as Kafka decides when its configs change.

The subject has to stay the same, because ACLs and `super.users` of other brokers may name it, and the new
certificate needs every alternative name of the old one, because clients connect to these hosts.
`ssl.allow.dn.changes` and `ssl.allow.san.changes` permit either change. Brokers with the old and the new
configuration have to be able to connect to each other.
"""

import ssl
from typing import Final

from headrace.security.certificate_fields import alternative_names, subject_name
from headrace.security.pem import InvalidTlsSetting

_KEYSTORE: Final = "ssl.keystore.location"
_ROUNDS: Final = 10  # more messages than a handshake of any version has


def check_subject(old_chain: str, new_chain: str) -> None:
    """Raise InvalidTlsSetting if the first certificates of two chains in PEM have different subjects."""
    old, new = (subject_name(_first(chain)) for chain in (old_chain, new_chain))
    if old.lower() != new.lower():
        raise InvalidTlsSetting(
            _KEYSTORE,
            f"has a certificate of {new!r}, expected {old!r} as before: "
            "ssl.allow.dn.changes=true permits the change",
        )


def check_alternative_names(old_chain: str, new_chain: str) -> None:
    """Raise InvalidTlsSetting if the new certificate lacks a subject alternative name of the old one."""
    missing = alternative_names(_first(old_chain)) - alternative_names(_first(new_chain))
    if missing:
        raise InvalidTlsSetting(
            _KEYSTORE,
            f"has a certificate without the subject alternative names {', '.join(sorted(missing))}: "
            "ssl.allow.san.changes=true permits the change",
        )


def check_handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Raise InvalidTlsSetting if two brokers with these contexts cannot connect to each other.

    The handshake takes place in memory. `client` must not check host names.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)]
    try:
        for _ in range(_ROUNDS):
            sides = [side for side in sides if not _advance(side)]
    except ssl.SSLError as error:
        why = getattr(error, "verify_message", None) or error.reason or str(error)
        raise InvalidTlsSetting(
            _KEYSTORE, f"or the truststore does not match those in use: brokers cannot connect ({why})"
        ) from error


def _advance(side: ssl.SSLObject) -> bool:
    """Continue a handshake as far as the other side's bytes allow; return whether it is complete."""
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _first(chain: str) -> bytes:
    end = "-----END CERTIFICATE-----"
    return ssl.PEM_cert_to_DER_cert(chain[: chain.index(end)] + end)
