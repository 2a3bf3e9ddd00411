"""Settings that all brokers have been given while they run: librdkafka asks about one broker only."""

from collections.abc import Mapping, Sequence
from typing import Final

from headrace.client.admin.admin import Config
from headrace.client.cluster.reading import BROKER
from headrace.client.wire.brokers import Brokers, raise_for
from headrace.protocol.schema.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from headrace.protocol.schema.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

ALL_BROKERS: Final = "all brokers"
"""Where such a setting comes from, among the sources of settings."""

_EVERYBODY: Final = ""  # the name of the resource that stands for all of them
_SET, _DELETE = 0, 1
_WHAT: Final = "the settings of all brokers"


def cluster_settings(brokers: Brokers) -> list[Config]:
    """What has been set for all brokers, by name: nothing, to begin with."""
    wanted = DescribeConfigsResource(resource_type=BROKER, resource_name=_EVERYBODY, configuration_keys=None)
    answer: DescribeConfigsResponse = brokers.any(DescribeConfigsRequest(resources=[wanted]))
    (found,) = answer.results
    raise_for(found.error_code, found.error_message, _WHAT)
    return [
        Config(
            name=each.name,
            value=each.value,
            source=ALL_BROKERS,
            is_default=False,
            read_only=each.read_only,
        )
        for each in sorted(found.configs, key=lambda each: each.name)
    ]


def alter_cluster_settings(brokers: Brokers, *, sets: Mapping[str, str], unsets: Sequence[str] = ()) -> None:
    """Set some for all brokers, and take others back; all or none."""
    changes = [AlterableConfig(name=name, config_operation=_SET, value=value) for name, value in sets.items()]
    changes += [AlterableConfig(name=name, config_operation=_DELETE, value=None) for name in unsets]
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=_EVERYBODY, configs=changes)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
    answer: IncrementalAlterConfigsResponse = brokers.any(request)
    (done,) = answer.responses
    raise_for(done.error_code, done.error_message, _WHAT)
