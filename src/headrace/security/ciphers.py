"""ssl.cipher.suites: Java's names of cipher suites, and OpenSSL's.

Java's list is complete: if it has no suite of TLS 1.3, TLS 1.3 is not used. A list with only OpenSSL's names
is one of OpenSSL's, which governs TLS 1.2 alone.
"""

import logging
import re
import ssl
from dataclasses import dataclass
from typing import Final

from headrace.security.pem import InvalidTlsSetting

SETTING: Final = "ssl.cipher.suites"
TLS13_SUITES: Final = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
_JAVA_NAME: Final = re.compile(
    r"(?:TLS|SSL)_(?P<exchange>[A-Z_]+?)_WITH_(?P<cipher>[A-Z0-9_]+?)(?:_(?P<mode>CBC|GCM))?_(?P<digest>SHA\d*)"
)
_logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CipherSuites:
    """Cipher suites by version of TLS; an empty tuple excludes the version, None leaves it to OpenSSL."""

    tls12: tuple[str, ...] | None = None
    tls13: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, text: str | None) -> "CipherSuites":
        """Parse names separated by commas or colons; InvalidTlsSetting names one that is unknown."""
        names = [each for each in re.split(r"[,:\s]+", text or "") if each]
        if not names:
            return cls()
        tls13 = tuple(name for name in names if name in TLS13_SUITES)
        tls12 = tuple(_openssl_name(name) for name in names if name not in TLS13_SUITES)
        java_list = any(name.startswith(("TLS_", "SSL_")) for name in names)
        return cls(tls12, tls13 if java_list else None)

    def versions(self, enabled: tuple[ssl.TLSVersion, ...]) -> tuple[ssl.TLSVersion, ...]:
        """Return those of the enabled versions that have a suite; InvalidTlsSetting if none has one."""
        excluded = {
            version
            for version, suites in (
                (ssl.TLSVersion.TLSv1_2, self.tls12),
                (ssl.TLSVersion.TLSv1_3, self.tls13),
            )
            if suites == ()
        }
        left = tuple(each for each in enabled if each not in excluded)
        if not left:
            raise InvalidTlsSetting(SETTING, "has no suite for the TLS versions in ssl.enabled.protocols")
        return left

    def choose_in(self, context: ssl.SSLContext) -> None:
        """Have `context` use these suites only."""
        if self.tls12:
            context.set_ciphers(":".join(self.tls12))
        if self.tls13 and set(self.tls13) != set(TLS13_SUITES):
            choose = getattr(context, "set_ciphersuites", None)  # since Python 3.15
            if choose is not None:
                choose(":".join(self.tls13))
            else:
                _logger.warning(
                    "%s lists %s, but this Python cannot choose among TLS 1.3's suites: all of %s are used",
                    SETTING,
                    ", ".join(self.tls13),
                    ", ".join(TLS13_SUITES),
                )


ANY_SUITE: Final = CipherSuites()


def _openssl_name(name: str) -> str:
    """Return OpenSSL's name of a suite of TLS 1.2; InvalidTlsSetting if OpenSSL does not have it."""
    translated, java = name, _JAVA_NAME.fullmatch(name)
    if java is not None:
        exchange = "" if java["exchange"] == "RSA" else java["exchange"].replace("_", "-") + "-"
        cipher = re.sub(r"^(AES|CAMELLIA|ARIA)_(\d+)", r"\1\2", java["cipher"]).replace("_", "-")
        mode = "-GCM" if java["mode"] == "GCM" else ""  # CBC is not in the name
        digest = "" if cipher == "CHACHA20-POLY1305" else f"-{java['digest']}"
        translated = f"{exchange}{cipher}{mode}{digest}"
    try:
        # One by one, because OpenSSL ignores an unknown name in a longer list.
        if translated[0] not in "!-+@":
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(translated)
    except ssl.SSLError as error:
        raise InvalidTlsSetting(
            SETTING,
            f"has the unknown or unsupported suite {name!r}: expected Java's names, such as "
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, or OpenSSL's, such as ECDHE-RSA-AES256-GCM-SHA384",
        ) from error
    return translated
