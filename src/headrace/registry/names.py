"""What subjects are called: `orders-value`, or `:.billing:orders-value` in the context `.billing`.

Ids are counted within a context, and a setting may be a context's. `:.billing:` alone stands for the
context, `:.:` for the default one, whose subjects are written without it, and `:.__GLOBAL:` for what
holds where nothing else is set.
"""

from typing import Final, NamedTuple

DEFAULT_CONTEXT: Final = "."
GLOBAL_CONTEXT: Final = ".__GLOBAL"
EVERYWHERE: Final = ":*:"
"""As a prefix: of subjects in all contexts."""

_RESERVED: Final = frozenset({"__GLOBAL", "__EMPTY"})
_FIRST_PRINTABLE: Final = 0x20
_CONTROLS: Final = range(0x7F, 0xA0)


class Name(NamedTuple):
    """A subject's name in two parts."""

    context: str
    subject: str

    def __str__(self) -> str:
        return self.subject if self.context == DEFAULT_CONTEXT else f"{self.prefix}{self.subject}"

    @property
    def prefix(self) -> str:
        """What names of this context begin with."""
        return "" if self.context == DEFAULT_CONTEXT else f":{self.context}:"


def parse(text: str) -> Name:
    """The two parts of a name as people write it."""
    if not text.startswith(":."):
        return Name(DEFAULT_CONTEXT, text)
    context, _, subject = text[1:].partition(":")
    return Name(context, subject)


def normal(text: str) -> str:
    """The one way to write a name: `:.:orders` is `orders`."""
    return str(parse(text))


def context_of(subject: str) -> str:
    return parse(subject).context


def beside(parent: str, subject: str) -> str:
    """The subject that a schema of `parent` means by this name: in its own context, unless it names one."""
    named = parse(subject)
    if named.context != DEFAULT_CONTEXT:
        return str(named)
    return str(Name(context_of(parent), named.subject))


def is_valid(text: str, *, for_settings: bool = False) -> bool:
    """Whether there may be such a subject; or such a subject or context, to have settings."""
    if any(ord(each) < _FIRST_PRINTABLE or ord(each) in _CONTROLS for each in text) or not _is_text(text):
        return False
    name = parse(text)
    if name.subject in _RESERVED:
        return False
    return for_settings or (name.subject != "" and name.context != GLOBAL_CONTEXT)


def _is_text(text: str) -> bool:
    """Half a surrogate pair has no bytes, and so cannot be kept."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
