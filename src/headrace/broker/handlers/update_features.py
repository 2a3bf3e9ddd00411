"""UpdateFeatures (key 57), v0-v2.

Behaviour: succeeds if every feature already has the requested level: the levels that ApiVersions lists are
           those of the broker's version, and cannot be changed. Any other update gets
           INVALID_UPDATE_VERSION.
Versions:  v1 upgrade type, validate only; v2 without results of single features.
"""

from headrace.broker.handlers.api_versions import FEATURES
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_cluster
from headrace.broker.slices import STEP, Steps
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import update_features as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation


@handles(ApiKey.UPDATE_FEATURES, range(3), requires=on_cluster(Operation.ALTER))
def update_features(
    request: api.UpdateFeaturesRequest, _context: Context
) -> Steps[api.UpdateFeaturesResponse]:
    features: set[str] = set()
    for number, update in enumerate(request.feature_updates):
        if not number % STEP:
            yield
        level = FEATURES.get(update.feature)
        if level != update.max_version_level:
            fixed = "is unknown" if level is None else f"is always {level}"
            return api.UpdateFeaturesResponse(
                error_code=ErrorCode.INVALID_UPDATE_VERSION,
                error_message=f"{update.feature[:100]} cannot be set to {update.max_version_level}: "
                f"it {fixed} in this version of Headrace (INVALID_UPDATE_VERSION)",
            )
        features.add(update.feature)
    return api.UpdateFeaturesResponse(
        results=[api.UpdatableFeatureResult(feature=feature) for feature in sorted(features)]
    )
