"""A regular expression of Java that selects topics by their whole names.

RE2 matches in linear time; what RE2 does not support is matched by backtracking, with a limit.
"""

from functools import cache
from typing import Any

from headrace.security.expressions import InvalidExpression, compile_expression
from headrace.spark.errors import InvalidOption
from headrace.spark.patterns.matcher import TooManySteps, matches
from headrace.spark.patterns.nodes import re2_text
from headrace.spark.patterns.parser import parse_pattern


class TopicPattern:
    """The option subscribePattern; InvalidPattern if it is not supported."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._root = parse_pattern(text)
        self._linear = _compiled(re2_text(self._root))

    def matches(self, topic: str) -> bool:
        """Whether the whole name matches; InvalidOption if that takes too long."""
        if self._linear is not None:
            return self._linear.fullmatch(topic) is not None
        try:
            return matches(self._root, topic)
        except TooManySteps:
            raise InvalidOption(
                "subscribePattern",
                f"{self.text!r} takes too long to match with topic {topic!r}: write it without lookaround, "
                "backreferences and possessive quantifiers, or with fewer nested repetitions",
            ) from None


def _compiled(text: str | None) -> Any:
    try:
        return None if text is None else compile_expression(text)
    except InvalidExpression:  # for example a count above 1000
        return None


topic_pattern = cache(TopicPattern)
"""Return the pattern, parsed once in a process."""
