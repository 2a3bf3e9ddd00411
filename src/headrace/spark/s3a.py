"""Hadoop's settings for S3, from the variables that other programs read."""

import os
from collections.abc import Mapping
from typing import Final

_PREFIX: Final = "spark.hadoop.fs.s3a"


def s3a_settings(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the endpoint and the region of s3a:// URLs, if they are set. Spark reads credentials itself."""
    found = {}
    if endpoint := variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL"):
        # Other servers than Amazon's rarely have a host name for each bucket.
        found = {f"{_PREFIX}.endpoint": endpoint, f"{_PREFIX}.path.style.access": "true"}
    if region := variables.get("AWS_REGION") or variables.get("AWS_DEFAULT_REGION"):
        found[f"{_PREFIX}.endpoint.region"] = region
    return found
