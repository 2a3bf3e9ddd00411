"""ApiVersions (key 18), v0-v4.

Behaviour: the handlers that exist, with their versions. A version we do not know is answered in v0 with
           UNSUPPORTED_VERSION and the same list. Produce is advertised from v0 on, though only v3 and
           newer are answered: older librdkafka takes a higher minimum for a broker that cannot compress.
Versions:  v3 flexible, client name and version; v4 as v3.
"""

from headrace.broker.dispatch import HANDLERS, Context, handles
from headrace.protocol.api_versions import VERSIONS
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from headrace.protocol.schema.index import ApiKey


@handles(ApiKey.API_VERSIONS, VERSIONS, when_ready=False)
def api_versions(_request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    known = context.version in VERSIONS
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
    )
