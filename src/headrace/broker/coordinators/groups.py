"""The coordinators of groups, on `__consumer_offsets`."""

import logging
import uuid
from collections.abc import Mapping

from headrace.broker.coordinators.runtime import CoordinatorHost, CoordinatorRuntime, InternalTopicSettings
from headrace.broker.coordinators.shard import CoordinatorShard
from headrace.broker.image import put_config
from headrace.broker.replicas.housekeeping import Job
from headrace.broker.settings.broker import MINUTE_MS
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.group_configs import consumer_timeouts
from headrace.broker.settings.setting import InvalidSetting
from headrace.coordinators.errors import CoordinatorError
from headrace.coordinators.group.coordinator import GroupCoordinator
from headrace.coordinators.group.limits import ConsumerTimeouts, GroupLimits
from headrace.storage.topics import OFFSETS_TOPIC

logger = logging.getLogger(__name__)

GroupShard = CoordinatorShard[GroupCoordinator]


class Groups(CoordinatorRuntime[GroupCoordinator]):
    """The groups that this broker coordinates."""

    topic_settings = InternalTopicSettings(
        name=OFFSETS_TOPIC,
        partitions="offsets.topic.num.partitions",
        replicas="offsets.topic.replication.factor",
        segment_bytes="offsets.topic.segment.bytes",
    )
    key_type = 0

    def __init__(self, host: CoordinatorHost) -> None:
        super().__init__(host)
        self.limits = group_limits(host.config())
        self.timeouts: dict[str, ConsumerTimeouts] = {}  # of groups with settings of their own

    def new_machine(self) -> GroupCoordinator:
        return GroupCoordinator(self.limits, lambda: str(uuid.uuid4()), self.timeouts)

    def use_config(self, config: BrokerConfig) -> None:
        self.limits = group_limits(config)
        for shard in self.all_shards:
            shard.machine.use(self.limits)

    def resource_config_changed(self, kind: str, name: str, values: Mapping[str, str]) -> None:
        """Use a group's own settings from the next heartbeat of each member on."""
        if kind != "groups":
            return
        try:
            timeouts = consumer_timeouts(values, self.host.config().values)
        except InvalidSetting as error:
            logger.warning("the configuration of group %.100r in ZooKeeper is ignored: %s", name, error)
            return
        put_config(self.host.image.group_configs, name, values)
        if timeouts == ConsumerTimeouts():
            self.timeouts.pop(name, None)
        else:
            self.timeouts[name] = timeouts

    def periodic_jobs(self, config: BrokerConfig) -> list[Job]:
        return [Job(self.expire_offsets, config.integer("offsets.retention.check.interval.ms") / 1000)]

    def expire_offsets(self) -> None:
        """Delete offsets that are older than offsets.retention.minutes."""
        for shard in self.shards:
            try:
                shard.write_in_parts(GroupCoordinator.expire_offsets)
            except CoordinatorError as error:
                logger.warning("groups: offsets in %s could not expire: %s", shard.partition.id, error)


def group_limits(config: BrokerConfig) -> GroupLimits:
    """Return the settings that the group coordinator uses."""
    policy = config.text("group.consumer.migration.policy")
    return GroupLimits(
        initial_rebalance_delay_ms=config.integer("group.initial.rebalance.delay.ms"),
        min_session_timeout_ms=config.integer("group.min.session.timeout.ms"),
        max_session_timeout_ms=config.integer("group.max.session.timeout.ms"),
        max_size=config.integer("group.max.size"),
        max_record_bytes=config.integer("message.max.bytes"),
        offset_metadata_max_bytes=config.integer("offset.metadata.max.bytes"),
        offsets_retention_ms=config.integer("offsets.retention.minutes") * MINUTE_MS,
        consumer_session_timeout_ms=config.integer("group.consumer.session.timeout.ms"),
        consumer_heartbeat_interval_ms=config.integer("group.consumer.heartbeat.interval.ms"),
        consumer_max_size=config.integer("group.consumer.max.size"),
        consumer_assignors=config.items("group.consumer.assignors"),
        may_upgrade=policy in {"bidirectional", "upgrade"},
        may_downgrade=policy in {"bidirectional", "downgrade"},
    )
