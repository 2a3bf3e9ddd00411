"""Administration of a cluster: `headrace.Admin`, and what `headrace topic` and `headrace config` do.

with Admin("127.0.0.1:9092") as admin:
    admin.create_topic("orders", partitions=6)
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, NoReturn, Self

from headrace.client.admin import arguments
from headrace.client.admin.acls import AclAdmin
from headrace.client.admin.quotas import QuotaAdmin
from headrace.client.admin.topics import Config, Topic, TopicAdmin, TopicSummary
from headrace.client.admin.users import UserAdmin
from headrace.client.errors import BadSetting, ClientError, Closed
from headrace.client.groups.admin import GroupAdmin
from headrace.client.groups.group import Group, GroupSummary
from headrace.client.groups.reset import Reset
from headrace.client.settings import Bootstrap, bootstrap_of, check_settings, gather
from headrace.client.transactions.admin import TransactionAdmin, wall_clock_ms
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.client.wire.requests import EARLIEST, LATEST
from headrace.protocol.ids import TopicPartition, by_topic

_LISTENER_PREFIX: Final = "listener.name."  # settings that Kafka does not describe: they are secret
_UNDESCRIBED: Final = frozenset(  # settings of a broker that Kafka describes only while they are set
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
_LONGEST_NAME: Final = 100  # characters of a misspelt name that are compared with the known names


class Span(NamedTuple):
    """The offsets of a partition: `start` is the first one, `next` is the offset of the next record."""

    start: int
    next: int


class _ClosedAdmin:
    """Stands for every part of an Admin that is closed."""

    def close(self) -> None:
        """Do nothing, again."""

    def __getattr__(self, _name: str) -> NoReturn:
        raise Closed("admin")


class Admin(UserAdmin, AclAdmin, QuotaAdmin, TransactionAdmin):
    """Topics, settings, groups, users and more. A call waits for its answer, or raises ClientError."""

    def __init__(
        self, bootstrap: Bootstrap = None, options: Mapping[str, str] | None = None, **named: object
    ) -> None:
        """All but `bootstrap` are librdkafka's settings, dotted or as keywords: `sasl_username="me"`."""
        if isinstance(bootstrap, ConnectionSettings) and bootstrap.bootstrap and not (options or named):
            self._brokers = Brokers(bootstrap)  # a delegation token has no form in librdkafka's settings
        else:
            given = gather(bootstrap, defaults={}, settings=options, named=named)
            check_settings(given)
            self._brokers = Brokers.configured(bootstrap_of(given), given)
        self._brokers.settings.check()
        self._topics = TopicAdmin(self._brokers)
        self._groups = GroupAdmin(self._brokers)
        self._now_ms = wall_clock_ms

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, _error: BaseException | None, _trace: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. May be called again."""
        self._brokers.close()
        closed: Any = _ClosedAdmin()
        self._brokers = self._topics = self._groups = closed

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replicas: int | None = None,
        configs: arguments.Configs | None = None,
    ) -> Topic:
        """Create a topic and return it; TopicExists if there is one. None: as the brokers are configured."""
        arguments.check_new_topic(name)
        self._topics.create(
            name,
            partitions=arguments.count_of("partitions", partitions, arguments.MOST_PARTITIONS),
            replicas=arguments.count_of("replicas", replicas, arguments.MOST_REPLICAS),
            configs=arguments.texts({} if configs is None else configs, "configs"),
        )
        return self.describe_topic(name)

    def list_topics(self) -> list[TopicSummary]:
        """Return every topic, by name."""
        return self._topics.summaries()

    def describe_topic(self, name: str) -> Topic:
        """Return a topic with its offsets and its own settings; NoSuchTopic if there is none."""
        arguments.check_topic(name)
        return self._topics.in_full(name)

    def add_partitions(self, name: str, total: int) -> None:
        """Increase the number of partitions of a topic to `total`."""
        arguments.check_topic(name)
        self._topics.add_partitions(name, arguments.total_of(total))

    def delete_topic(self, name: str) -> None:
        """Delete a topic and all its records."""
        arguments.check_topic(name)
        self._topics.delete(name)

    def topic_configs(self, name: str) -> list[Config]:
        """Return every setting of a topic, by name."""
        arguments.check_topic(name)
        return self._topics.configs(name)

    def broker_configs(self, broker_id: int) -> list[Config]:
        """Return every setting of a broker, by name."""
        return self._topics.broker_configs(arguments.broker_of(broker_id))

    def alter_topic_configs(self, name: str, *, sets: arguments.Configs, unsets: Sequence[str] = ()) -> None:
        """Set some settings of a topic, and reset others to the broker's values; all or none."""
        arguments.check_topic(name)
        values, names = _changes(sets, unsets)
        if names:  # a broker accepts to unset a setting that does not exist
            _check_names(names, self.topic_configs(name), name)
        self._topics.alter_configs(name, sets=values, unsets=names)

    def alter_broker_configs(
        self, broker_id: int, *, sets: arguments.Configs, unsets: Sequence[str] = ()
    ) -> None:
        """Set some settings of a running broker, and reset others; all or none."""
        values, names = _changes(sets, unsets)
        number = arguments.broker_of(broker_id)
        # A broker accepts settings that do not exist, so their names are checked.
        _check_names([*values, *names], self._topics.broker_configs(number), f"broker {number}")
        self._topics.alter_broker_configs(number, sets=values, unsets=names)

    def offsets(self, topic: str) -> dict[int, Span]:
        """Return the ends of each partition of a topic; partitions without a leader are left out."""
        arguments.check_topic(topic)
        partitions = self._topics.partitions_of(topic)
        starts = self._topics.offsets(partitions, EARLIEST)
        ends = self._topics.offsets(partitions, LATEST)
        return {
            partition.partition: Span(start, end)
            for partition in partitions
            if (start := starts.get(partition)) is not None and (end := ends.get(partition)) is not None
        }

    def offsets_at(self, topic: str, time_ms: int) -> dict[int, int | None]:
        """Return the first offset of each partition written at this time or later; None if there is none."""
        timestamp = arguments.time_of(time_ms)
        arguments.check_topic(topic)
        found = self._topics.offsets(self._topics.partitions_of(topic), timestamp)
        return {each.partition: offset for each, offset in found.items()}

    def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int]:
        """Delete the records before an offset (-1: all) of each partition; return the new start offsets."""
        arguments.check_topic(topic)
        return self._topics.delete_records(topic, arguments.ends_of(before))

    def list_groups(self) -> list[GroupSummary]:
        """Return every group, by name."""
        return list(self._groups.list_groups())

    def describe_group(self, name: str) -> Group:
        """Return a group with its members and offsets; NoSuchGroup if there is none."""
        return self._groups.describe([name])[0]

    def lag(self, group: str) -> dict[TopicPartition, int]:
        """Return how many records of each partition come after the group's committed offset."""
        return {
            TopicPartition(partition.topic, partition.partition): partition.lag
            for partition in self.describe_group(group).partitions
            if partition.lag is not None
        }

    def set_group_offsets(self, group: str, offsets: Mapping[TopicPartition | tuple[str, int], int]) -> None:
        """Commit offsets for a group, which may be new; GroupActive while it has members."""
        wanted = arguments.group_offsets(offsets)
        self._groups.check_inactive([group], may_be_new=True)
        for topic, indexes in by_topic(wanted).items():
            arguments.check_topic(topic)
            self._topics.partitions_of(topic, indexes)
        resets = [
            Reset(topic=topic, partition=index, old=None, new=offset)
            for (topic, index), offset in wanted.items()
        ]
        self._groups.reset(group, resets)

    def delete_group(self, name: str) -> None:
        """Delete a group and its offsets; GroupActive while it has members."""
        self._groups.delete([name])


def _changes(sets: arguments.Configs, unsets: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    values, names = arguments.texts(sets, "sets"), arguments.names_of(unsets)
    if not values and not names:
        raise BadSetting("there is nothing to change: give sets={NAME: VALUE} or unsets=[NAME]")
    for name in names:
        if name in values:
            raise BadSetting(f"{name} is to be set, and is among `unsets`, too")
    return values, names


def _check_names(names: Sequence[str], configs: Sequence[Config], what: str) -> None:
    """Raise ClientError for a setting that the topic or broker does not describe: it is probably misspelt."""
    known = {config.name for config in configs} | _UNDESCRIBED
    for name in names:
        if name not in known and not name.startswith(_LISTENER_PREFIX):
            near = get_close_matches(name[:_LONGEST_NAME], known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ClientError(f"{what}: there is no setting {name!r}{hint}")
