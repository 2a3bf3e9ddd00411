"""The broker settings of transactions, with Kafka's names and defaults."""

from typing import Final

from headrace.broker.settings.setting import Kind, Scope, Setting

_MAX_INT: Final = 2**31 - 1


def _number(name: str, default: int, doc: str, kind: Kind = Kind.INT) -> Setting:
    return Setting(name=name, kind=kind, default=default, doc=doc, low=1, high=_MAX_INT)


TRANSACTION_SETTINGS: Final = [
    _number(
        "transaction.state.log.num.partitions",
        50,
        "The number of partitions of __transaction_state when it is created.",
    ),
    Setting(
        name="transaction.state.log.replication.factor",
        kind=Kind.SHORT,
        default=3,
        doc="The replication factor of __transaction_state when it is created; if this is not set, at most "
        "the number of brokers.",
        low=1,
    ),
    _number("transaction.state.log.min.isr", 2, "The min.insync.replicas of __transaction_state."),
    _number(
        "transaction.state.log.segment.bytes", 100 * 1024**2, "The segment.bytes of __transaction_state."
    ),
    _number(
        "transaction.max.timeout.ms",
        15 * 60 * 1000,
        "The longest transaction.timeout.ms that a producer may ask for.",
    ),
    _number(
        "transactional.id.expiration.ms",
        7 * 24 * 60 * 60 * 1000,
        "How long a transactional id is kept after its last transaction.",
    ),
    _number(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        60 * 60 * 1000,
        "How often expired transactional ids are deleted.",
    ),
    Setting(
        name="transaction.partition.verification.enable",
        kind=Kind.BOOLEAN,
        default=True,
        doc="Whether a leader asks the transaction coordinator before it accepts the first batch of a "
        "transaction from a producer older than Kafka 4.0. Without it a delayed batch can leave a "
        "transaction open for ever.",
        scope=Scope.CLUSTER_WIDE,
    ),
    Setting(
        name="transaction.two.phase.commit.enable",
        kind=Kind.BOOLEAN,
        default=False,
        doc="Whether producers may have transactions without a timeout (KIP-939), whose outcome an external "
        "coordinator decides.",
    ),
]
