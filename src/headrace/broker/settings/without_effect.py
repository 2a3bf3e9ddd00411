"""The broker settings of Kafka 4.3 that have no effect in Headrace, grouped by reason.

Their names, types, defaults and bounds are declared, so that a broker accepts files and tools made for Kafka
and refuses invalid values. `tests/compat/test_settings_against_kafka.py` compares this list with Apache
Kafka's.
"""

from dataclasses import replace
from functools import partial
from typing import Final

from headrace.broker.settings.setting import Kind, Scope, Setting, Value

_ALL: Final = Scope.CLUSTER_WIDE
_ONE: Final = Scope.PER_BROKER
_MAX_INT: Final = 2**31 - 1
_MAX_LONG: Final = 2**63 - 1


def _setting(kind: Kind, name: str, default: Value | None = None, **bounds: object) -> Setting:
    if kind is Kind.LIST and default is None:
        default = ()
    return Setting(name=name, kind=kind, default=default, doc="", has_effect=False, **bounds)  # type: ignore[arg-type]


_flag = partial(_setting, Kind.BOOLEAN)
_text = partial(_setting, Kind.STRING)
_short = partial(_setting, Kind.SHORT)
_int = partial(_setting, Kind.INT)
_long = partial(_setting, Kind.LONG)
_double = partial(_setting, Kind.DOUBLE)
_list = partial(_setting, Kind.LIST)
_class = partial(_setting, Kind.CLASS)
_password = partial(_setting, Kind.PASSWORD)


def _unused(reason: str, *settings: Setting) -> list[Setting]:
    return [replace(setting, doc=f"No effect: {reason}.") for setting in settings]


SETTINGS_WITHOUT_EFFECT: Final = [
    *_unused(
        "a broker uses one event loop, and starts threads as needed",
        _int("background.threads", 10, low=1, scope=_ALL),
        _int("group.coordinator.background.threads", 2, low=1),
        _int("group.coordinator.threads", 4, low=1),
        _int("num.io.threads", 8, low=1, scope=_ALL),
        _int("num.network.threads", 3, low=1, scope=_ALL),
        _int("num.recovery.threads.per.data.dir", 2, low=1, scope=_ALL),
        _int("num.replica.fetchers", 1, low=1, scope=_ALL),
        _int("queued.max.requests", 500, low=1),
    ),
    *_unused(
        "the operating system's defaults are used",
        _int("replica.socket.receive.buffer.bytes", 65_536),
        _int("socket.listen.backlog.size", 50, low=1),
        _int("socket.receive.buffer.bytes", 102_400),
        _int("socket.send.buffer.bytes", 102_400),
    ),
    *_unused(
        "timeouts between brokers are fixed",
        _int("controller.socket.timeout.ms", 30_000),
        _int("replica.fetch.backoff.ms", 1000, low=0),
        _int("replica.socket.timeout.ms", 30_000),
        _int("request.timeout.ms", 30_000),
        _long("socket.connection.setup.timeout.max.ms", 30_000),
        _long("socket.connection.setup.timeout.ms", 10_000),
    ),
    *_unused("all listeners start together", _list("early.start.listeners")),
    *_unused(
        "a request leaves its purgatory when it is completed",
        _int("delete.records.purgatory.purge.interval.requests", 1),
        _int("fetch.purgatory.purge.interval.requests", 1000),
        _int("producer.purgatory.purge.interval.requests", 1000),
    ),
    *_unused(
        "all checkpoints are written with the high watermarks",
        _int("log.flush.offset.checkpoint.interval.ms", 60_000, low=0),
        _int("log.flush.start.offset.checkpoint.interval.ms", 60_000, low=0),
    ),
    *_unused(
        "the sizes of the log cleaner's buffers are fixed",
        _double("log.cleaner.io.buffer.load.factor", 0.9, scope=_ALL),
        _int("log.cleaner.io.buffer.size", 524_288, low=0, scope=_ALL),
    ),
    *_unused(
        "retention tasks begin when the broker starts, and expire producer ids in each run",
        _long("log.initial.task.delay.ms", 30_000, low=0, internal=True),
        _int("producer.id.expiration.check.interval.ms", 600_000, low=1, internal=True),
    ),
    *_unused(
        "a broker has one log directory",
        _int("alter.log.dirs.replication.quota.window.num", 11, low=1),
        _int("alter.log.dirs.replication.quota.window.size.seconds", 1, low=1),
        _list("cordoned.log.dirs", scope=_ONE, only_default=True),
        _long("log.dir.failure.timeout.ms", 30_000, low=1),
        _int("num.replica.alter.log.dirs.threads", None),
        _long("replica.alter.log.dirs.io.max.bytes.per.second", _MAX_LONG, low=0, scope=_ALL, internal=True),
    ),
    *_unused(
        "both group protocols are always enabled, and assignments are computed immediately",
        _int("group.consumer.assignment.interval.ms", 1000, low=0, scope=_ALL),
        _int("group.consumer.max.assignment.interval.ms", 15_000, low=0),
        _int("group.consumer.min.assignment.interval.ms", 0, low=0),
        _int("group.consumer.regex.refresh.interval.ms", 600_000, low=10_000, internal=True),
        _list(
            "group.coordinator.rebalance.protocols",
            ("classic", "consumer", "streams"),
            choices=("consumer", "classic", "share", "streams"),
        ),
    ),
    *_unused(
        "group records are written immediately and uncompressed, and read 256 KiB at a time",
        _int("group.coordinator.append.linger.ms", -1, low=-1),
        _int("group.coordinator.cached.buffer.max.bytes", 1_048_588, low=524_288, scope=_ALL),
        _int("offsets.commit.timeout.ms", 5000, low=1),
        _int("offsets.load.buffer.size", 5_242_880, low=1),
        _int("offsets.topic.compression.codec", 0),
    ),
    *_unused(
        "quotas have no plugins, and replication throttles are enforced per second",
        _class("client.quota.callback.class"),
        _int("replication.quota.window.num", 11, low=1),
        _int("replication.quota.window.size.seconds", 1, low=1),
    ),
    *_unused(
        "metrics are served over HTTP, and client metrics are not collected",
        _int("kafka.metrics.polling.interval.secs", 10, low=1),
        _list("kafka.metrics.reporters"),
        _list("metric.reporters", ("org.apache.kafka.common.metrics.JmxReporter",), scope=_ALL),
        _int("metrics.num.samples", 2, low=1),
        _text("metrics.recording.level", "INFO"),
        _long("metrics.sample.window.ms", 30_000, low=1),
        _int("telemetry.max.bytes", 1_048_576, low=1),
    ),
    *_unused("config providers are not supported", _list("config.providers", scope=_ALL)),
    *_unused(
        "KRaft is not supported: the cluster metadata is in ZooKeeper",
        _int("broker.heartbeat.interval.ms", 2000),
        _int("broker.session.timeout.ms", 9000),
        _list("controller.listener.names"),
        _long("controller.performance.always.log.threshold.ms", 2000, low=0, internal=True),
        _long("controller.performance.sample.period.ms", 60_000, low=100, internal=True),
        _int("controller.quorum.append.linger.ms", 25, low=0),
        _flag("controller.quorum.auto.join.enable", False),
        _list("controller.quorum.bootstrap.servers"),
        _int("controller.quorum.election.backoff.max.ms", 1000, low=0),
        _int("controller.quorum.election.timeout.ms", 1000, low=0),
        _int("controller.quorum.fetch.max.bytes", 1_048_576, low=1),
        _int("controller.quorum.fetch.snapshot.max.bytes", 1_048_576, low=1),
        _int("controller.quorum.fetch.timeout.ms", 2000, low=0),
        _int("controller.quorum.request.timeout.ms", 2000, low=0),
        _int("controller.quorum.retry.backoff.ms", 20, low=0),
        _list("controller.quorum.voters"),
        _int("initial.broker.registration.timeout.ms", 60_000),
        _long("internal.metadata.delete.delay.millis", 60_000, internal=True),
        _int("internal.metadata.log.segment.bytes", None, internal=True),
        _int("internal.metadata.max.batch.size.in.bytes", 8_388_608, internal=True),
        _text("metadata.log.dir"),
        _long("metadata.log.max.record.bytes.between.snapshots", 20_971_520, low=1),
        _long("metadata.log.max.snapshot.interval.ms", 3_600_000, low=0),
        _int("metadata.log.segment.bytes", 1_073_741_824, low=8_388_608),
        _long("metadata.log.segment.ms", 604_800_000),
        _int("metadata.max.idle.interval.ms", 500, low=0),
        _long("metadata.max.retention.bytes", 104_857_600),
        _long("metadata.max.retention.ms", 604_800_000),
        _text("sasl.mechanism.controller.protocol", "GSSAPI"),
        _long("server.max.startup.time.ms", _MAX_LONG, low=0, internal=True),
        _long("unclean.leader.election.interval.ms", 300_000, low=1, internal=True),
        _flag("unstable.feature.versions.enable", False, internal=True),
    ),
    *_unused(
        "tiered storage is not supported",
        _flag("follower.fetch.last.tiered.offset.enable", False, scope=_ALL),
        _int("remote.fetch.max.wait.ms", 500, low=1, scope=_ALL),
        _long("remote.list.offsets.request.timeout.ms", 30_000, low=1, scope=_ALL),
        _long("remote.log.index.file.cache.total.size.bytes", 1_073_741_824, low=1, scope=_ALL),
        _long("remote.log.index.file.cache.ttl.ms", 900_000, low=-1, internal=True),
        _int("remote.log.manager.copier.thread.pool.size", 10, low=1, scope=_ALL),
        _long("remote.log.manager.copy.max.bytes.per.second", _MAX_LONG, low=1, scope=_ALL),
        _int("remote.log.manager.copy.quota.window.num", 11, low=1),
        _int("remote.log.manager.copy.quota.window.size.seconds", 1, low=1),
        _int("remote.log.manager.expiration.thread.pool.size", 10, low=1, scope=_ALL),
        _long("remote.log.manager.fetch.max.bytes.per.second", _MAX_LONG, low=1, scope=_ALL),
        _int("remote.log.manager.fetch.quota.window.num", 11, low=1),
        _int("remote.log.manager.fetch.quota.window.size.seconds", 1, low=1),
        _int("remote.log.manager.follower.thread.pool.size", 2, low=1, scope=_ALL),
        _long("remote.log.manager.task.interval.ms", 30_000, low=1),
        _long("remote.log.manager.task.retry.backoff.max.ms", 30_000, low=1, internal=True),
        _long("remote.log.manager.task.retry.backoff.ms", 500, low=1, internal=True),
        _double("remote.log.manager.task.retry.jitter", 0.2, low=0, high=0.5, internal=True),
        _int("remote.log.manager.thread.pool.size", 2, low=1),
        _int("remote.log.metadata.custom.metadata.max.bytes", 128, low=0),
        _text(
            "remote.log.metadata.manager.class.name",
            "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        ),
        _text("remote.log.metadata.manager.class.path"),
        _text("remote.log.metadata.manager.impl.prefix", "rlmm.config."),
        _text("remote.log.metadata.manager.listener.name"),
        _int("remote.log.reader.max.pending.tasks", 100, low=1),
        _int("remote.log.reader.threads", 10, low=1, scope=_ALL),
        _text("remote.log.storage.manager.class.name"),
        _text("remote.log.storage.manager.class.path"),
        _text("remote.log.storage.manager.impl.prefix", "rsm.config."),
    ),
    *_unused(
        "transactions are aborted at their timeout, loaded in small slices, and verified with a backoff of "
        "2 to 50 ms",
        _int("add.partitions.to.txn.retry.backoff.max.ms", 100, low=0),
        _int("add.partitions.to.txn.retry.backoff.ms", 20, low=1),
        _int("transaction.abort.timed.out.transaction.cleanup.interval.ms", 10_000, low=1),
        _int("transaction.state.log.load.buffer.size", 5_242_880, low=1),
    ),
    *_unused(
        "share groups are not supported",
        _int("group.share.assignment.interval.ms", 1000, low=0, scope=_ALL),
        _list("group.share.assignors", ("simple",)),
        _int("group.share.delivery.count.limit", 5, low=2, high=10),
        _int("group.share.heartbeat.interval.ms", 5000, low=1),
        _int("group.share.initialize.retry.interval.ms", 30_000, low=1, internal=True),
        _int("group.share.max.assignment.interval.ms", 15_000, low=0),
        _int("group.share.max.delivery.count.limit", 10, low=5, high=25),
        _int("group.share.max.heartbeat.interval.ms", 15_000, low=1),
        _int("group.share.max.partition.max.record.locks", 4000, low=2000, high=10000),
        _int("group.share.max.record.lock.duration.ms", 60_000, low=30000, high=3600000),
        _int("group.share.max.session.timeout.ms", 60_000, low=1),
        _int("group.share.max.share.sessions", 2000, low=1),
        _int("group.share.max.size", 200, low=1, high=1000),
        _int("group.share.min.assignment.interval.ms", 0, low=0),
        _int("group.share.min.delivery.count.limit", 2, low=2, high=5),
        _int("group.share.min.heartbeat.interval.ms", 5000, low=1),
        _int("group.share.min.partition.max.record.locks", 100, low=100, high=2000),
        _int("group.share.min.record.lock.duration.ms", 15_000, low=1000, high=30000),
        _int("group.share.min.session.timeout.ms", 45_000, low=1),
        _int("group.share.partition.max.record.locks", 2000, low=100, high=10000),
        _text(
            "group.share.persister.class.name",
            "org.apache.kafka.server.share.persister.DefaultStatePersister",
            internal=True,
        ),
        _int("group.share.record.lock.duration.ms", 30_000, low=1000, high=3600000),
        _int("group.share.session.timeout.ms", 45_000, low=1),
        _int("share.coordinator.append.linger.ms", -1, low=-1),
        _int("share.coordinator.cached.buffer.max.bytes", 1_048_588, low=524_288, scope=_ALL),
        _int("share.coordinator.cold.partition.snapshot.interval.ms", 300_000, low=1, internal=True),
        _int("share.coordinator.load.buffer.size", 5_242_880, low=1),
        _int("share.coordinator.snapshot.update.records.per.snapshot", 500, low=0, high=500),
        _int("share.coordinator.state.topic.compression.codec", 0),
        _short("share.coordinator.state.topic.min.isr", 2, low=1),
        _int("share.coordinator.state.topic.num.partitions", 50, low=1),
        _int("share.coordinator.state.topic.prune.interval.ms", 300_000, low=1, internal=True),
        _short("share.coordinator.state.topic.replication.factor", 3, low=1),
        _int("share.coordinator.state.topic.segment.bytes", 104_857_600, low=1),
        _int("share.coordinator.threads", 1, low=1),
        _int("share.coordinator.write.timeout.ms", 5000, low=1),
        _int("share.fetch.purgatory.purge.interval.requests", 1000),
    ),
    *_unused(
        "streams groups are not supported",
        _int("group.streams.assignment.interval.ms", 1000, low=0, scope=_ALL),
        _int("group.streams.heartbeat.interval.ms", 5000, low=1),
        _int("group.streams.initial.rebalance.delay.ms", 3000, low=0),
        _int("group.streams.max.assignment.interval.ms", 15_000, low=0),
        _int("group.streams.max.heartbeat.interval.ms", 15_000, low=1),
        _int("group.streams.max.session.timeout.ms", 60_000, low=1),
        _int("group.streams.max.size", _MAX_INT, low=1),
        _int("group.streams.max.standby.replicas", 2, low=0),
        _int("group.streams.min.assignment.interval.ms", 0, low=0),
        _int("group.streams.min.heartbeat.interval.ms", 5000, low=1),
        _int("group.streams.min.session.timeout.ms", 45_000, low=1),
        _int("group.streams.num.standby.replicas", 0, low=0),
        _int("group.streams.session.timeout.ms", 45_000, low=1),
    ),
    *_unused(
        "Kerberos (GSSAPI) is not supported",
        _text("sasl.kerberos.kinit.cmd", "/usr/bin/kinit", scope=_ONE),
        _long("sasl.kerberos.min.time.before.relogin", 60_000, scope=_ONE),
        _list("sasl.kerberos.principal.to.local.rules", ("DEFAULT",), scope=_ONE),
        _text("sasl.kerberos.service.name", scope=_ONE),
        _double("sasl.kerberos.ticket.renew.jitter", 0.05, scope=_ONE),
        _double("sasl.kerberos.ticket.renew.window.factor", 0.8, scope=_ONE),
    ),
    *_unused(
        "authentication has no plugins",
        _class(
            "principal.builder.class",
            "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
            scope=_ONE,
        ),
        _class("sasl.client.callback.handler.class"),
        _class("sasl.login.callback.handler.class"),
        _class("sasl.login.class"),
        _class(
            "sasl.oauthbearer.jwt.retriever.class",
            "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        ),
        _class(
            "sasl.oauthbearer.jwt.validator.class",
            "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        ),
        _class("sasl.server.callback.handler.class"),
        _text("security.providers"),
    ),
    *_unused(
        "keys that cannot be loaded are requested again after 10 s",
        _long("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", 10_000),
        _long("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", 100),
    ),
    *_unused(
        "brokers authenticate to each other with PLAIN or SCRAM, and do not obtain tokens",
        _int("sasl.login.connect.timeout.ms", None),
        _int("sasl.login.read.timeout.ms", None),
        _short("sasl.login.refresh.buffer.seconds", 300, scope=_ONE),
        _short("sasl.login.refresh.min.period.seconds", 60, scope=_ONE),
        _double("sasl.login.refresh.window.factor", 0.8, scope=_ONE),
        _double("sasl.login.refresh.window.jitter", 0.05, scope=_ONE),
        _long("sasl.login.retry.backoff.max.ms", 10_000),
        _long("sasl.login.retry.backoff.ms", 100),
        _text("sasl.oauthbearer.assertion.algorithm", "RS256"),
        _text("sasl.oauthbearer.assertion.claim.aud"),
        _int("sasl.oauthbearer.assertion.claim.exp.seconds", 300, low=0, high=86400),
        _text("sasl.oauthbearer.assertion.claim.iss"),
        _flag("sasl.oauthbearer.assertion.claim.jti.include", False),
        _int("sasl.oauthbearer.assertion.claim.nbf.seconds", 60, low=0, high=3600),
        _text("sasl.oauthbearer.assertion.claim.sub"),
        _text("sasl.oauthbearer.assertion.file"),
        _text("sasl.oauthbearer.assertion.private.key.file"),
        _password("sasl.oauthbearer.assertion.private.key.passphrase"),
        _text("sasl.oauthbearer.assertion.template.file"),
        _text("sasl.oauthbearer.client.credentials.client.id"),
        _password("sasl.oauthbearer.client.credentials.client.secret"),
        _text("sasl.oauthbearer.token.endpoint.url"),
    ),
    *_unused(
        "TLS is OpenSSL's",
        _class("ssl.engine.factory.class", scope=_ONE),
        _text("ssl.keymanager.algorithm", "SunX509", scope=_ONE),
        _text("ssl.provider", scope=_ONE),
        _text("ssl.secure.random.implementation", scope=_ONE),
        _text("ssl.trustmanager.algorithm", "PKIX", scope=_ONE),
    ),
]
