"""The settings of Kafka's clients, as options `kafka.*`: which are obeyed, have no effect, or are refused.

The names are those of Java's ConsumerConfig and ProducerConfig (Kafka 3.9 and 4.3), and librdkafka's names of
security settings. All others have no effect, which a warning says; one that is nearly a name in the tables
below is a misspelling.
"""

import difflib
import logging
from collections.abc import Iterable
from functools import cache
from typing import Final

from headrace.spark.errors import InvalidOption

PREFIX: Final = "kafka."

# The login callback handler of OAUTHBEARER has a default, see headrace.client.wire.
_OBEYED: Final = {
    "connections": """
    bootstrap.servers client.id config.providers enable.ssl.certificate.verification sasl.jaas.config
    sasl.login.callback.handler.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.mechanism
    sasl.mechanisms sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.client.id
    sasl.oauthbearer.client.secret sasl.oauthbearer.extensions sasl.oauthbearer.header.urlencode
    sasl.oauthbearer.method sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url sasl.password
    sasl.username security.protocol ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem
    ssl.cipher.suites ssl.crl.location ssl.enabled.protocols ssl.endpoint.identification.algorithm
    ssl.key.location ssl.key.password ssl.key.pem ssl.keystore.certificate.chain ssl.keystore.key
    ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.truststore.certificates
    ssl.truststore.location ssl.truststore.password ssl.truststore.type
    """,
    "sources": """
    client.rack fetch.max.bytes fetch.max.wait.ms group.id isolation.level max.partition.fetch.bytes
    """,
    "sinks": """
    acks batch.size compression.type delivery.timeout.ms enable.idempotence transaction.timeout.ms
    transactional.id
    """,
}
_OF_CONNECTIONS: Final = frozenset(_OBEYED["connections"].split())
OF_SOURCES: Final = _OF_CONNECTIONS.union(_OBEYED["sources"].split())
OF_SINKS: Final = _OF_CONNECTIONS.union(_OBEYED["sinks"].split())
# Settings by the reason why they are refused: to ignore them would change the result.
_REASONS: Final = {
    "use startingOffsets": "auto.offset.reset",
    "progress is kept in the query's checkpoint": "enable.auto.commit",
    "Java classes cannot be called": """
        interceptor.classes sasl.client.callback.handler.class sasl.login.class
        sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class security.providers
        ssl.engine.factory.class
    """,
    "keys are bytes; decode them with functions on the column": "key.deserializer",
    "keys are bytes; encode them with functions on the column": "key.serializer",
    "Java classes cannot be called; use a column 'partition'": "partitioner.class",
    "rows with a key go to its partition; use a column 'partition'": "partitioner.ignore.keys",
    "the client authenticates by clientId and clientSecret, or with the token in a file": """
        sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
        sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
        sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
        sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
        sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
        sasl.oauthbearer.assertion.template.file
    """,
    "a transaction is committed with its batch, in one step": "transaction.two.phase.commit.enable",
    "values are bytes; decode them with functions on the column": "value.deserializer",
    "values are bytes; encode them with functions on the column": "value.serializer",
}
REFUSED: Final = {name: why for why, names in _REASONS.items() for name in names.split()}
_OF_PROVIDERS: Final = "config.providers."  # and a provider's name: headrace.client.secrets

_ALIKE: Final = 0.9  # of two names; no two settings of Java's clients are so similar

logger = logging.getLogger(__name__)


def check_names(names: Iterable[str], obeyed: frozenset[str]) -> None:
    """Raise InvalidOption for settings that are refused or misspelt; log those that have no effect, once.

    The names have no prefix. `obeyed` is OF_SOURCES or OF_SINKS.
    """
    known = OF_SOURCES | OF_SINKS | REFUSED.keys()
    for name in names:
        if name in obeyed or name.startswith(_OF_PROVIDERS):
            continue
        if name in REFUSED:
            raise InvalidOption(PREFIX + name, f"cannot be set: {REFUSED[name]}")
        if name not in known and (close := difflib.get_close_matches(name, known, 1, _ALIKE)):
            why = f"there is no such setting of Kafka's clients; did you mean {PREFIX}{close[0]}?"
            raise InvalidOption(PREFIX + name, why)
        use = "reading" if name in OF_SOURCES else "writing" if name in OF_SINKS else None
        warn_once(f"option {PREFIX}{name} has no effect" + (f": it is for {use}" if use else ""))


@cache
def warn_once(sentence: str) -> None:
    """Log a warning, once in a process: Spark makes the options of a query several times."""
    logger.warning(sentence)
