"""ApiVersions (key 18), v0-v4.

Behaviour: returns the supported APIs and versions. An unknown version is answered in v0 with
           UNSUPPORTED_VERSION and the same list. Produce is advertised from v0 on, though only v3 and later
           are supported: older librdkafka would assume from a higher minimum that the broker cannot compress.
           A client software name or version that violates KIP-511 is answered with INVALID_REQUEST and an
           empty list. The feature transaction.version tells clients that they may use transactions with an
           epoch bump (KIP-890).
Versions:  v3 flexible, client name and version; v4 as v3.
"""

import re

from headrace.broker.dispatch import HANDLERS, Context, handles
from headrace.protocol.api_versions import VERSIONS
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
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[
            ApiVersion(
                api_key=handler.key,
                min_version=0 if handler.key == ApiKey.PRODUCE else handler.versions.start,
                max_version=handler.versions.stop - 1,
            )
            for handler in sorted(HANDLERS.values(), key=lambda each: each.key)
            if isinstance(handler.key, ApiKey)
        ],
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


def _names_its_software(request: ApiVersionsRequest) -> bool:
    """Return whether the client software name and version are valid according to KIP-511."""
    return all(
        _SOFTWARE.fullmatch(text) for text in (request.client_software_name, request.client_software_version)
    )
