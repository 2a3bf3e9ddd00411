"""The settings of client quotas, with Kafka's names and defaults. The quotas themselves are in ZooKeeper."""

from typing import Final

from headrace.broker.settings.setting import Kind, Scope, Setting


def _whole(name: str, default: int, doc: str, scope: Scope = Scope.READ_ONLY, low: int = 1) -> Setting:
    return Setting(name=name, kind=Kind.INT, default=default, doc=doc, scope=scope, low=low)


QUOTA_SETTINGS: Final = [
    _whole("quota.window.num", 11, "The number of samples that rates of client quotas are measured over."),
    _whole("quota.window.size.seconds", 1, "The duration of such a sample."),
    _whole(
        "controller.quota.window.num",
        11,
        "The number of samples whose controller mutations a client may make in one burst.",
    ),
    _whole("controller.quota.window.size.seconds", 1, "The duration of such a sample."),
    _whole(
        "max.connection.creation.rate",
        2**31 - 1,
        "The maximum number of new connections per second. More wait for up to quota.window.size.seconds, "
        "and are closed if that is not enough.",
        Scope.CLUSTER_WIDE,
        low=0,
    ),
]
