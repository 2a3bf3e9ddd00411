"""Which versions of which APIs another broker supports. Each connection learns it once, from ApiVersions.

During a rolling upgrade the brokers of a cluster differ: a request is sent in the highest version that both
brokers know. ApiVersions lists the APIs that only brokers use to brokers alone, which give `BROKER_SOFTWARE`
as the name of their software. Brokers from before this rule list none of them, and support `FIRST_VERSIONS`.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from headrace.protocol.api import request_class
from headrace.protocol.between_brokers.broker_metrics import BROKER_METRICS
from headrace.protocol.between_brokers.step_down import STEP_DOWN
from headrace.protocol.between_brokers.update_metadata import UPDATE_METADATA
from headrace.protocol.peers import UnsupportedByPeer
from headrace.protocol.schema.api_versions import ApiVersionsResponse
from headrace.protocol.schema.index import ApiKey

FIRST_VERSIONS: Final[Mapping[int, range]] = {
    UPDATE_METADATA: range(8, 9),
    ApiKey.ENVELOPE: range(1),
    BROKER_METRICS: range(1),
    STEP_DOWN: range(1),
}
"""Of brokers that do not list these APIs. Never change it: such brokers do not change any more either."""


class PeerVersions(NamedTuple):
    """The versions that another broker supports, by API key."""

    supported: Mapping[int, range]

    @classmethod
    def of(cls, response: ApiVersionsResponse) -> "PeerVersions":
        listed = {each.api_key: range(each.min_version, each.max_version + 1) for each in response.api_keys}
        return cls(listed if UPDATE_METADATA in listed else {**FIRST_VERSIONS, **listed})

    def common(self, key: int, versions: range) -> range:
        """Return the versions among `versions` that the other broker supports; perhaps none."""
        theirs = self.supported.get(key, range(0))
        return range(max(versions.start, theirs.start), min(versions.stop, theirs.stop))

    def choose(self, key: int, versions: range) -> int:
        """Return the highest version of an API that both brokers support, or raise UnsupportedByPeer."""
        common = self.common(key, versions)
        if common:
            return common[-1]
        theirs = self.supported.get(key)
        found = "does not support it" if theirs is None else f"supports {_text(theirs)}"
        name = request_class(key).__name__.removesuffix("Request")
        raise UnsupportedByPeer(
            f"{name} is needed in {_text(versions)}, and the broker {found} (UNSUPPORTED_VERSION)", key
        )


def _text(versions: range) -> str:
    first, last = versions.start, versions.stop - 1
    return f"v{first}" if first == last else f"v{first}-v{last}"
