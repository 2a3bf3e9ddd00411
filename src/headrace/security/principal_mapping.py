r"""ssl.principal.mapping.rules: from the subject of a client's certificate to the name of its principal.

Rules are separated by commas, and the first that matches the whole name decides:

    RULE:^CN=(.*?),OU=Sales.*$/$1@sales/L     replace by the pattern's groups; L lowers, U raises the letters
    DEFAULT                                   the name itself

A pattern is Java's in Kafka and RE2's here, which takes time linear in the length of the name, whatever a
client has in its certificate. RE2 has no backreferences and no lookaround: such a rule is refused. A slash
within a rule is written `\/`. If no rule matches, authentication fails.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from headrace.security.certificate_fields import subject_name
from headrace.security.expressions import compile_expression
from headrace.security.pem import InvalidTlsSetting
from headrace.security.principals import ANONYMOUS, Principal

SETTING: Final = "ssl.principal.mapping.rules"
_RULE_TEXT: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE_TEXT})\s*(,\s*|$)")
_RULE: Final = re.compile(_RULE_TEXT)
_NAMED_GROUP: Final = re.compile(r"(?<!\\)\(\?<(?=[A-Za-z])")
_GROUP_NAME: Final = re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}")
_DIGITS: Final = "0123456789"
_CASES: Final[dict[str, Callable[[str], str]]] = {"": str, "L": str.lower, "U": str.upper}


class NoMatchingRule(Exception):
    """No rule matches the name of a certificate's subject: its client cannot be authenticated."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no rule in {SETTING} matches {name!r}: add a rule for it, or DEFAULT at the end")


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: Any  # re2 has no types
    replacement: tuple[str | int, ...]  # literal texts, and numbers of groups
    case: str

    def apply(self, name: str) -> str | None:
        """Return the name that the rule makes of `name`; None if its pattern does not match all of it."""
        if not self.pattern.fullmatch(name):
            return None
        # Kafka replaces every occurrence: "RULE:.*/x/" makes "xx", because ".*" also matches the empty end.
        return _CASES[self.case](self.pattern.sub(self._expand, name))

    def _expand(self, match: Any) -> str:
        return "".join(part if isinstance(part, str) else match[part] or "" for part in self.replacement)


class PrincipalMapper:
    def __init__(self, rules: str = "DEFAULT") -> None:
        """Parse the rules; InvalidTlsSetting says which rule is wrong."""
        self._rules = tuple(_parse(rules))

    def name(self, distinguished_name: str) -> str:
        """Return the principal's name for a subject; NoMatchingRule if no rule matches it."""
        for rule in self._rules:
            found = distinguished_name if rule is None else rule.apply(distinguished_name)
            if found is not None:
                return found
        raise NoMatchingRule(distinguished_name)

    def principal(self, certificate: bytes | None) -> Principal:
        """Return the principal of a client by its certificate in DER; without one it is ANONYMOUS."""
        return ANONYMOUS if certificate is None else Principal(self.name(subject_name(certificate)))


def _parse(rules: str) -> Iterator[_Rule | None]:
    """Yield the rules, None for DEFAULT. An empty rule, as between two commas, is ignored."""
    for each in _SPLITTER.finditer(rules.strip()):
        text = each[1]
        found = _RULE.match(text)
        if found is None or found.end() != len(text):
            raise InvalidTlsSetting(
                SETTING, f"has the invalid rule {text!r}: expected DEFAULT or RULE:pattern/replacement/[LU]"
            )
        if found[1] is not None:
            yield None
        elif found[2] is not None:
            try:
                compiled = compile_expression(_NAMED_GROUP.sub("(?P<", found[2]))
                replacement = tuple(_replacement(found[3], compiled))
            except ValueError as error:
                raise InvalidTlsSetting(SETTING, f"has the invalid rule {text!r}: {error}") from error
            yield _Rule(compiled, replacement, found[4])


def _replacement(text: str, pattern: Any) -> Iterator[str | int]:
    """Yield the parts of a replacement in Java's syntax: `$1`, `${name}`, and a backslash before a literal.

    `$12` is group 1 and a 2 if the pattern has fewer than 12 groups. As in Kafka, a number without a
    group is literal text, provided that the pattern has groups.
    """
    at = 0
    while at < len(text):
        char, at = text[at], at + 1
        if char == "\\":
            if at == len(text):
                raise ValueError("its replacement ends in a backslash")
            yield text[at]
            at += 1
        elif char != "$":
            yield char
        elif named := _GROUP_NAME.match(text, at):
            if named[1] not in pattern.groupindex:
                raise ValueError(f"its pattern has no group named {named[1]}")
            yield pattern.groupindex[named[1]]
            at = named.end()
        elif text[at : at + 1] in _DIGITS and at < len(text):
            part, at = _numbered(text, at, pattern.groups)
            yield part
        else:
            raise ValueError("a $ in its replacement is not followed by a group's number: write \\$")


def _numbered(text: str, at: int, groups: int) -> tuple[str | int, int]:
    """Return the group whose number is at `at`, or a literal `$`, and where the text goes on."""
    number, end = int(text[at]), at + 1
    if number > groups:
        if not groups:
            raise ValueError(f"its pattern has no group {number}: write \\$ for a literal $")
        return "$", at
    while end < len(text) and text[end] in _DIGITS and number * 10 + int(text[end]) <= groups:
        number, end = number * 10 + int(text[end]), end + 1
    return number, end
