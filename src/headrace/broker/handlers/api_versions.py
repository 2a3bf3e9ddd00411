"""ApiVersions (key 18), v0-v4.

Behaviour: returns the supported APIs and versions. An unknown version is answered in v0 with
           UNSUPPORTED_VERSION and the same list. Produce is advertised from v0 on, though only v3 and later
           are supported: older librdkafka would assume from a higher minimum that the broker cannot compress.
           A client software name or version that violates KIP-511 is answered with INVALID_REQUEST and an
           empty list. The feature transaction.version tells clients that they may use transactions with an
           epoch bump (KIP-890). As in Kafka, an API that is forwarded is listed in the versions that the
           controller supports as well: during a rolling upgrade it may be of an earlier version. Brokers,
           which name their software headrace-broker, are also told the APIs that only brokers use.
Versions:  v3 flexible, client name and version; v4 as v3.
"""

import re

from headrace.broker.dispatch import HANDLERS, Context, Handler, handles
from headrace.broker.peer_versions import PeerVersions
from headrace.protocol.api_versions import BROKER_SOFTWARE, VERSIONS
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from headrace.protocol.schema.index import ApiKey
from headrace.transaction.state import EPOCH_BUMP_VERSION

_FIRST_WITH_SOFTWARE = 3
_TRANSACTIONS = "transaction.version"
_SOFTWARE = re.compile("[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")  # KIP-511


@handles(ApiKey.API_VERSIONS, VERSIONS, requires=(), when_ready=False)
def api_versions(request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    known = context.version in VERSIONS
    if known and context.version >= _FIRST_WITH_SOFTWARE and not _names_its_software(request):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=())
    is_broker = request.client_software_name == BROKER_SOFTWARE and context.accepts_brokers
    if is_broker and context.usage is not None:
        context.usage.exempt()
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_VERSION,
        api_keys=_of_brokers() if is_broker else _of_clients(context.broker.controller_client.versions),
        supported_features=[
            SupportedFeatureKey(name=_TRANSACTIONS, min_version=0, max_version=EPOCH_BUMP_VERSION)
        ],
        finalized_features_epoch=0,
        finalized_features=[
            FinalizedFeatureKey(
                name=_TRANSACTIONS,
                max_version_level=EPOCH_BUMP_VERSION,
                min_version_level=EPOCH_BUMP_VERSION,
            )
        ],
    )


def _of_clients(controller: PeerVersions | None) -> list[ApiVersion]:
    """Return what clients may send; `controller` is what the controller supports, if that is another broker.

    An API that this broker forwards is left out if the controller supports no common version.
    """
    return [
        _listed(handler, versions)
        for handler in _sorted_handlers()
        if isinstance(handler.key, ApiKey)
        and (versions := handler.versions if controller is None else _forwarded(handler, controller))
    ]


def _of_brokers() -> list[ApiVersion]:
    return [_listed(handler, handler.versions) for handler in _sorted_handlers()]


def _forwarded(handler: Handler, controller: PeerVersions) -> range:
    return controller.common(handler.key, handler.versions) if handler.on_controller else handler.versions


def _listed(handler: Handler, versions: range) -> ApiVersion:
    return ApiVersion(
        api_key=handler.key,
        min_version=0 if handler.key == ApiKey.PRODUCE else versions.start,
        max_version=versions.stop - 1,
    )


def _sorted_handlers() -> list[Handler]:
    return sorted(HANDLERS.values(), key=lambda each: each.key)


def _names_its_software(request: ApiVersionsRequest) -> bool:
    """Return whether the client software name and version are valid according to KIP-511."""
    return all(
        _SOFTWARE.fullmatch(text) for text in (request.client_software_name, request.client_software_version)
    )
