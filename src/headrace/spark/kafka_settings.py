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

_OF_CONNECTIONS: Final = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "config.providers",
        "enable.ssl.certificate.verification",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",  # OAUTHBEARER has one by default, see headrace.client.wire
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.crl.location",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
OF_SOURCES: Final = _OF_CONNECTIONS | {
    "client.rack",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "group.id",
    "isolation.level",
    "max.partition.fetch.bytes",
}
OF_SINKS: Final = _OF_CONNECTIONS | {
    "acks",
    "batch.size",
    "compression.type",
    "delivery.timeout.ms",
    "enable.idempotence",
    "transaction.timeout.ms",
    "transactional.id",
}

_NO_MEMBERS: Final = "a query reads partitions without being a member of its group"
_ALWAYS_CRC: Final = "checksums are always verified"
_OUR_RETRIES: Final = "retries have a backoff and an overall timeout of their own"
_OUR_SOCKETS: Final = "connections have their own timeouts and buffers"
_NO_JMX: Final = "there are no metrics of Java's client"
_NO_KERBEROS: Final = "GSSAPI is not supported"
_OF_JAVA_TLS: Final = "Python's TLS has no such choice"
_OF_BROKERS: Final = "only brokers validate tokens"
_WHOLE_TASK: Final = "a task sends its rows as soon as a batch is full"
_AS_RDKAFKA: Final = "it is a setting of librdkafka, which Spark's tasks do not use"
_ONE_LEVEL: Final = "codecs have their default level"

_NO_EFFECT: Final = {
    "allow.auto.create.topics": "a source never creates topics; a sink may, if the brokers allow it",
    "auto.commit.interval.ms": "offsets are committed for the group after every batch",
    "auto.include.jmx.reporter": _NO_JMX,
    "buffer.memory": _WHOLE_TASK,
    "check.crcs": _ALWAYS_CRC,
    "client.dns.lookup": "all addresses of a name are tried",
    "compression.gzip.level": _ONE_LEVEL,
    "compression.lz4.level": _ONE_LEVEL,
    "compression.zstd.level": _ONE_LEVEL,
    "connections.max.idle.ms": _OUR_SOCKETS,
    "default.api.timeout.ms": _OUR_RETRIES,
    "enable.metrics.push": _NO_JMX,
    "exclude.internal.topics": "a pattern never selects internal topics, as in Spark's own source",
    "fetch.min.bytes": "the driver asks only for records that exist",
    "group.instance.id": _NO_MEMBERS,
    "group.protocol": _NO_MEMBERS,
    "group.remote.assignor": _NO_MEMBERS,
    "heartbeat.interval.ms": _NO_MEMBERS,
    "linger.ms": _WHOLE_TASK,
    "max.block.ms": _WHOLE_TASK,
    "max.in.flight.requests.per.connection": "it is 5, and records keep their order",
    "max.poll.interval.ms": _NO_MEMBERS,
    "max.poll.records": "records are fetched in batches of bytes: use max.partition.fetch.bytes",
    "max.request.size": "requests have up to 4 MiB: use batch.size",
    "metadata.max.age.ms": "every batch has fresh metadata",
    "metadata.max.idle.ms": "every batch has fresh metadata",
    "metadata.recovery.rebootstrap.trigger.ms": "bootstrap servers are always tried as well",
    "metadata.recovery.strategy": "bootstrap servers are always tried as well",
    "metric.reporters": _NO_JMX,
    "metrics.num.samples": _NO_JMX,
    "metrics.recording.level": _NO_JMX,
    "metrics.sample.window.ms": _NO_JMX,
    "partition.assignment.strategy": _NO_MEMBERS,
    "partitioner.adaptive.partitioning.enable": "rows without a key go to each partition in turn",
    "partitioner.availability.timeout.ms": "rows without a key go to each partition in turn",
    "receive.buffer.bytes": _OUR_SOCKETS,
    "reconnect.backoff.max.ms": _OUR_RETRIES,
    "reconnect.backoff.ms": _OUR_RETRIES,
    "request.timeout.ms": _OUR_RETRIES,
    "retries": "delivery.timeout.ms limits the retries",
    "retry.backoff.max.ms": _OUR_RETRIES,
    "retry.backoff.ms": _OUR_RETRIES,
    "sasl.kerberos.kinit.cmd": _NO_KERBEROS,
    "sasl.kerberos.min.time.before.relogin": _NO_KERBEROS,
    "sasl.kerberos.service.name": _NO_KERBEROS,
    "sasl.kerberos.ticket.renew.jitter": _NO_KERBEROS,
    "sasl.kerberos.ticket.renew.window.factor": _NO_KERBEROS,
    "sasl.login.refresh.buffer.seconds": "a token is replaced after 80 % of its lifetime",
    "sasl.login.refresh.min.period.seconds": "a token is replaced after 80 % of its lifetime",
    "sasl.login.refresh.window.factor": "a token is replaced after 80 % of its lifetime",
    "sasl.login.refresh.window.jitter": "a token is replaced after 80 % of its lifetime",
    "sasl.login.retry.backoff.max.ms": _OUR_RETRIES,
    "sasl.login.retry.backoff.ms": _OUR_RETRIES,
    "sasl.oauthbearer.clock.skew.seconds": _OF_BROKERS,
    "sasl.oauthbearer.expected.audience": _OF_BROKERS,
    "sasl.oauthbearer.expected.issuer": _OF_BROKERS,
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": _OF_BROKERS,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _OF_BROKERS,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _OF_BROKERS,
    "sasl.oauthbearer.jwks.endpoint.url": _OF_BROKERS,
    "sasl.oauthbearer.scope.claim.name": _OF_BROKERS,
    "sasl.oauthbearer.sub.claim.name": _OF_BROKERS,
    "send.buffer.bytes": _OUR_SOCKETS,
    "session.timeout.ms": _NO_MEMBERS,
    "share.acknowledgement.mode": "a query is not in a share group",
    "share.acquire.mode": "a query is not in a share group",
    "socket.connection.setup.timeout.max.ms": _OUR_SOCKETS,
    "socket.connection.setup.timeout.ms": _OUR_SOCKETS,
    "ssl.keymanager.algorithm": _OF_JAVA_TLS,
    "ssl.protocol": "ssl.enabled.protocols decides",
    "ssl.provider": _OF_JAVA_TLS,
    "ssl.secure.random.implementation": _OF_JAVA_TLS,
    "ssl.trustmanager.algorithm": _OF_JAVA_TLS,
    **dict.fromkeys(
        (
            "api.version.request",
            "broker.address.family",
            "broker.address.ttl",
            "debug",
            "log.connection.close",
            "log_level",
            "message.max.bytes",
            "message.timeout.ms",
            "queue.buffering.max.kbytes",
            "queue.buffering.max.messages",
            "queue.buffering.max.ms",
            "queued.max.messages.kbytes",
            "queued.min.messages",
            "receive.message.max.bytes",
            "socket.keepalive.enable",
            "socket.nagle.disable",
            "socket.timeout.ms",
            "statistics.interval.ms",
            "topic.metadata.refresh.interval.ms",
        ),
        _AS_RDKAFKA,
    ),
}

_NO_JAVA: Final = "Java classes cannot be called"
_NO_ASSERTION: Final = "the client authenticates by clientId and clientSecret, or with the token in a file"
REFUSED: Final = {
    "auto.offset.reset": "use startingOffsets",
    "enable.auto.commit": "progress is kept in the query's checkpoint",
    "interceptor.classes": _NO_JAVA,
    "key.deserializer": "keys are bytes; decode them with functions on the column",
    "key.serializer": "keys are bytes; encode them with functions on the column",
    "partitioner.class": f"{_NO_JAVA}; use a column 'partition'",
    "partitioner.ignore.keys": "rows with a key go to its partition; use a column 'partition'",
    "sasl.client.callback.handler.class": _NO_JAVA,
    "sasl.login.class": _NO_JAVA,
    "sasl.oauthbearer.assertion.algorithm": _NO_ASSERTION,
    "sasl.oauthbearer.assertion.claim.aud": _NO_ASSERTION,
    "sasl.oauthbearer.assertion.claim.exp.seconds": _NO_ASSERTION,
    "sasl.oauthbearer.assertion.claim.iss": _NO_ASSERTION,
    "sasl.oauthbearer.assertion.claim.jti.include": _NO_ASSERTION,
    "sasl.oauthbearer.assertion.claim.nbf.seconds": _NO_ASSERTION,
    "sasl.oauthbearer.assertion.claim.sub": _NO_ASSERTION,
    "sasl.oauthbearer.assertion.file": _NO_ASSERTION,
    "sasl.oauthbearer.assertion.private.key.file": _NO_ASSERTION,
    "sasl.oauthbearer.assertion.private.key.passphrase": _NO_ASSERTION,
    "sasl.oauthbearer.assertion.template.file": _NO_ASSERTION,
    "sasl.oauthbearer.jwt.retriever.class": _NO_JAVA,
    "sasl.oauthbearer.jwt.validator.class": _NO_JAVA,
    "security.providers": _NO_JAVA,
    "ssl.engine.factory.class": _NO_JAVA,
    "transaction.two.phase.commit.enable": "a transaction is committed with its batch, in one step",
    "value.deserializer": "values are bytes; decode them with functions on the column",
    "value.serializer": "values are bytes; encode them with functions on the column",
}
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
            raise InvalidOption(PREFIX + name, _unknown(name))


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, OF_SOURCES | OF_SINKS | _NO_EFFECT.keys() | REFUSED.keys(), 1)
    hint = f"; did you mean {PREFIX}{close[0]}?" if close else ""
    return f"there is no such setting of Kafka's clients{hint}"


@cache
def warn_once(sentence: str) -> None:
    """Log a warning, once in a process: Spark makes the options of a query several times."""
    logger.warning(sentence)
