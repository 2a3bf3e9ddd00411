"""The settings of a client metrics subscription (KIP-714). It is stored, but no metrics are collected."""

from collections.abc import Mapping
from typing import Final

from headrace.broker.settings.setting import (
    CLUSTER_WIDE,
    InvalidSetting,
    Settings,
    integer,
    items,
    without_effect,
)
from headrace.security.expressions import InvalidExpression, compile_expression

_SELECTORS: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
_LONGEST_PATTERN: Final = 1_000  # characters
_MOST_PATTERNS: Final = 100

CLIENT_METRICS_CONFIGS: Final = Settings(
    without_effect(
        "client metrics are not collected",
        integer("interval.ms", 300_000, scope=CLUSTER_WIDE),
        items("match", (), scope=CLUSTER_WIDE),
        items("metrics", (), scope=CLUSTER_WIDE),
    )
)
INTERVAL_MS: Final = range(100, 3_600_001)


def check_patterns(own: Mapping[str, str]) -> None:
    """Raise InvalidSetting unless each pattern of `match` is SELECTOR=REGULAR EXPRESSION."""
    patterns = CLIENT_METRICS_CONFIGS.find("match").parse(own.get("match", ""))
    assert isinstance(patterns, tuple), patterns
    if len(patterns) > _MOST_PATTERNS:
        raise InvalidSetting(f"match has {len(patterns)} patterns, expected at most {_MOST_PATTERNS}")
    for pattern in patterns:
        selector, equals, expression = pattern.partition("=")
        if not equals or selector.strip() not in _SELECTORS or len(expression) > _LONGEST_PATTERN:
            raise InvalidSetting(
                f"match={pattern[:_LONGEST_PATTERN]}: expected NAME=REGULAR EXPRESSION, "
                f"where NAME is one of {', '.join(_SELECTORS)}"
            )
        try:
            compile_expression(expression.strip())
        except InvalidExpression as error:
            raise InvalidSetting(f"match={pattern}: {error}") from None
