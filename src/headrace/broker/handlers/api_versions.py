"""ApiVersions (key 18), v0-v5.

Behaviour: returns the supported APIs and versions. An unknown version is answered in v0 with
           UNSUPPORTED_VERSION and the same list. Produce is advertised from v0 on, though only v3 and later
           are supported: older librdkafka would assume from a higher minimum that the broker cannot compress.
           A client software name or version that violates KIP-511 is answered with INVALID_REQUEST and an
           empty list. The features transaction.version and group.version tell clients that they may use
           transactions with an epoch bump (KIP-890) and consumer groups of the new protocol (KIP-848);
           their levels are fixed. As in Kafka, an API that is forwarded is listed in the versions that the
           controller supports as well: during a rolling upgrade it may be of an earlier version, and a
           version that Kafka calls unstable is listed only with unstable.api.versions.enable. Brokers,
           which name their software headrace-broker, are also told the APIs that only brokers use.
Versions:  v3 flexible, client name and version; v4 as v3; v5 the cluster id and node id that the client
           expects: another broker answers REBOOTSTRAP_REQUIRED (KIP-1242).
"""

import re
from typing import Final

from headrace.broker.peers.peer import PeerVersions
from headrace.broker.requests.dispatch import Context, Handler, handles
from headrace.coordinators.transaction.state import EPOCH_BUMP_VERSION
from headrace.protocol.api_versions import BROKER_SOFTWARE, VERSIONS
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import api_versions as api
from headrace.protocol.schema.index import ApiKey

FEATURES: Final = {"group.version": 1, "transaction.version": EPOCH_BUMP_VERSION}
"""The levels of Kafka's features. All brokers of a version have the same, and support no others."""
_FIRST_WITH_SOFTWARE = 3
_NO_NODE = -1
_SOFTWARE = re.compile("[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")  # KIP-511


@handles(ApiKey.API_VERSIONS, VERSIONS, requires=(), when_ready=False)
def api_versions(request: api.ApiVersionsRequest, context: Context) -> api.ApiVersionsResponse:
    broker, known = context.broker, context.version in VERSIONS
    software = (request.client_software_name, request.client_software_version)
    if known and context.version >= _FIRST_WITH_SOFTWARE and not all(map(_SOFTWARE.fullmatch, software)):
        return api.ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())
    if (request.cluster_id is None) != (request.node_id == _NO_NODE):
        return api.ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())
    expected = (request.cluster_id, request.node_id)
    if request.cluster_id is not None and expected != (broker.image.cluster_id, broker.broker_id):
        return api.ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED, api_keys=())
    is_broker = request.client_software_name == BROKER_SOFTWARE and context.accepts_brokers
    if is_broker and context.usage is not None:
        context.usage.exempt()
    handlers = sorted(broker.handlers.values(), key=lambda handler: handler.key)
    return api.ApiVersionsResponse(
        error_code=ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[_listed(handler, handler.versions) for handler in handlers]
        if is_broker
        else _of_clients(handlers, broker.controller_client.versions),
        supported_features=[
            api.SupportedFeatureKey(name=name, min_version=level, max_version=level)
            for name, level in FEATURES.items()
        ],
        finalized_features_epoch=0,
        finalized_features=[
            api.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in FEATURES.items()
        ],
    )


def _of_clients(handlers: list[Handler], controller: PeerVersions | None) -> list[api.ApiVersion]:
    """Return what clients may send; `controller` is what the controller supports, if that is another broker.

    An API that this broker forwards is left out if the controller supports no common version.
    """
    listed = []
    for handler in handlers:
        versions = handler.versions
        if handler.on_controller and controller is not None:
            versions = controller.common(handler.key, versions)
        if isinstance(handler.key, ApiKey) and versions:
            listed.append(_listed(handler, versions))
    return listed


def _listed(handler: Handler, versions: range) -> api.ApiVersion:
    return api.ApiVersion(
        api_key=handler.key,
        min_version=0 if handler.key == ApiKey.PRODUCE else versions.start,
        max_version=versions.stop - 1,
    )
