"""The settings of Kafka's clients, as options `kafka.*`: which are obeyed, have no effect, or are refused.

The names are those of Java's ConsumerConfig and ProducerConfig (Kafka 3.9 and 4.3), and librdkafka's names of
security settings. Every name is in one of the tables below, so that no setting is ignored silently.
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
# Settings by the reason why they have no effect, or are refused.
_WITHOUT_EFFECT: Final = {
    "a source never creates topics; a sink may, if the brokers allow it": "allow.auto.create.topics",
    "offsets are committed for the group after every batch": "auto.commit.interval.ms",
    "there are no metrics of Java's client": """
        auto.include.jmx.reporter enable.metrics.push metric.reporters metrics.num.samples
        metrics.recording.level metrics.sample.window.ms
    """,
    "a task sends its rows as soon as a batch is full": "buffer.memory linger.ms max.block.ms",
    "checksums are always verified": "check.crcs",
    "all addresses of a name are tried": "client.dns.lookup",
    "codecs have their default level": "compression.gzip.level compression.lz4.level compression.zstd.level",
    "connections have their own timeouts and buffers": """
        connections.max.idle.ms receive.buffer.bytes send.buffer.bytes socket.connection.setup.timeout.max.ms
        socket.connection.setup.timeout.ms
    """,
    "retries have a backoff and an overall timeout of their own": """
        default.api.timeout.ms reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms
        retry.backoff.max.ms retry.backoff.ms sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    """,
    "a pattern never selects internal topics, as in Spark's own source": "exclude.internal.topics",
    "the driver asks only for records that exist": "fetch.min.bytes",
    "a query reads partitions without being a member of its group": """
        group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms max.poll.interval.ms
        partition.assignment.strategy session.timeout.ms
    """,
    "it is 5, and records keep their order": "max.in.flight.requests.per.connection",
    "records are fetched in batches of bytes: use max.partition.fetch.bytes": "max.poll.records",
    "requests have up to 4 MiB: use batch.size": "max.request.size",
    "every batch has fresh metadata": "metadata.max.age.ms metadata.max.idle.ms",
    "bootstrap servers are always tried as well": """
        metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
    """,
    "rows without a key go to each partition in turn": """
        partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms
    """,
    "delivery.timeout.ms limits the retries": "retries",
    "GSSAPI is not supported": """
        sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
        sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
    """,
    "a token is replaced after 80 % of its lifetime": """
        sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
        sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    """,
    "only brokers validate tokens": """
        sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience
        sasl.oauthbearer.expected.issuer sasl.oauthbearer.jwks.endpoint.refresh.ms
        sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
        sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    """,
    "a query is not in a share group": "share.acknowledgement.mode share.acquire.mode",
    "Python's TLS has no such choice": """
        ssl.keymanager.algorithm ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
    """,
    "ssl.enabled.protocols decides": "ssl.protocol",
    "it is a setting of librdkafka, which Spark's tasks do not use": """
        api.version.request broker.address.family broker.address.ttl debug log.connection.close log_level
        message.max.bytes message.timeout.ms queue.buffering.max.kbytes queue.buffering.max.messages
        queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages receive.message.max.bytes
        socket.keepalive.enable socket.nagle.disable socket.timeout.ms statistics.interval.ms
        topic.metadata.refresh.interval.ms
    """,
}
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
_NO_EFFECT: Final = {name: why for why, names in _WITHOUT_EFFECT.items() for name in names.split()}
REFUSED: Final = {name: why for why, names in _REASONS.items() for name in names.split()}
_OF_PROVIDERS: Final = "config.providers."  # and a provider's name: headrace.client.secrets

logger = logging.getLogger(__name__)


def check_names(names: Iterable[str], obeyed: frozenset[str]) -> None:
    """Raise InvalidOption for settings that are refused or unknown; log those that have no effect, once.

    The names have no prefix. `obeyed` is OF_SOURCES or OF_SINKS.
    """
    for name in names:
        if name in obeyed or name.startswith(_OF_PROVIDERS):
            continue
        if name in REFUSED:
            raise InvalidOption(PREFIX + name, f"cannot be set: {REFUSED[name]}")
        if name in _NO_EFFECT:
            warn_once(f"option {PREFIX}{name} has no effect: {_NO_EFFECT[name]}")
        elif name in OF_SOURCES | OF_SINKS:
            use = "reading" if name in OF_SOURCES else "writing"
            warn_once(f"option {PREFIX}{name} has no effect: it is for {use}")
        else:
            known = OF_SOURCES | OF_SINKS | _NO_EFFECT.keys() | REFUSED.keys()
            close = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {PREFIX}{close[0]}?" if close else ""
            raise InvalidOption(PREFIX + name, f"there is no such setting of Kafka's clients{hint}")


@cache
def warn_once(sentence: str) -> None:
    """Log a warning, once in a process: Spark makes the options of a query several times."""
    logger.warning(sentence)
