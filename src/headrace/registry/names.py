"""Names of subjects: `orders-value`, or `:.billing:orders-value` in the context `.billing`.

Each context assigns its own ids and may have settings. `:.billing:` names the context itself, `:.:` the
default context, whose subjects are written without a prefix, and `:.__GLOBAL:` the settings that apply where
nothing else is set.
"""

from typing import Final, NamedTuple

DEFAULT_CONTEXT: Final = "."
GLOBAL_CONTEXT: Final = ".__GLOBAL"
EVERYWHERE: Final = ":*:"
"""The prefix of a search in all contexts."""

_RESERVED: Final = frozenset({"__GLOBAL", "__EMPTY"})
_FIRST_PRINTABLE: Final = 0x20
_CONTROLS: Final = range(0x7F, 0xA0)


class Name(NamedTuple):
    context: str
    subject: str

    def __str__(self) -> str:
        return self.subject if self.context == DEFAULT_CONTEXT else f"{self.prefix}{self.subject}"

    @property
    def prefix(self) -> str:
        """The prefix of the names in this context."""
        return "" if self.context == DEFAULT_CONTEXT else f":{self.context}:"


def parse(text: str) -> Name:
    """Return the context and the subject of a name."""
    if not text.startswith(":."):
        return Name(DEFAULT_CONTEXT, text)
    context, _, subject = text[1:].partition(":")
    return Name(context, subject)


def normal(text: str) -> str:
    """Return the canonical form of a name: `:.:orders` is `orders`."""
    return str(parse(text))


def context_of(subject: str) -> str:
    return parse(subject).context


def qualified(parent: str, subject: str) -> str:
    """Return the full name of a subject that `parent` refers to, by default in the context of `parent`."""
    named = parse(subject)
    if named.context != DEFAULT_CONTEXT:
        return str(named)
    return str(Name(context_of(parent), named.subject))


def is_valid(text: str, *, for_settings: bool = False) -> bool:
    """Return whether this can be the name of a subject or, `for_settings`, of a subject or context."""
    if any(ord(letter) < _FIRST_PRINTABLE or ord(letter) in _CONTROLS for letter in text):
        return False
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    name = parse(text)
    if name.subject in _RESERVED:
        return False
    return for_settings or (name.subject != "" and name.context != GLOBAL_CONTEXT)
