r"""Java's character properties, as `\p{Alpha}`: which characters of topic names have them."""

import re
import string
import unicodedata
from collections.abc import Iterable
from typing import Final

from headrace.spark.patterns.nodes import ALPHABET

DIGITS: Final = frozenset(string.digits)
WORD: Final = ALPHABET - {".", "-"}
NONE: Final = frozenset[str]()
_LETTERS: Final = frozenset(string.ascii_letters)
_LOWER, _UPPER = frozenset(string.ascii_lowercase), frozenset(string.ascii_uppercase)
_PUNCTUATION: Final = frozenset("._-")
_ALNUM: Final = _LETTERS | DIGITS

_POSIX: Final = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": ALPHABET,
    "Alpha": _LETTERS,
    "Digit": DIGITS,
    "Alnum": _ALNUM,
    "Punct": _PUNCTUATION,
    "Graph": ALPHABET,
    "Print": ALPHABET,
    "Blank": NONE,
    "Cntrl": NONE,
    "XDigit": frozenset(string.hexdigits),
    "Space": NONE,
}
_OF_JAVA: Final = {
    "javaLowerCase": _LOWER,
    "javaUpperCase": _UPPER,
    "javaAlphabetic": _LETTERS,
    "javaIdeographic": NONE,
    "javaTitleCase": NONE,
    "javaDigit": DIGITS,
    "javaDefined": ALPHABET,
    "javaLetter": _LETTERS,
    "javaLetterOrDigit": _ALNUM,
    "javaJavaIdentifierStart": _LETTERS | {"_"},
    "javaJavaIdentifierPart": _ALNUM | {"_"},
    "javaUnicodeIdentifierStart": _LETTERS,
    "javaUnicodeIdentifierPart": _ALNUM | {"_"},
    "javaIdentifierIgnorable": NONE,
    "javaSpaceChar": NONE,
    "javaWhitespace": NONE,
    "javaISOControl": NONE,
    "javaMirrored": NONE,
}
_BINARY: Final = {  # after "Is", in any case
    "alphabetic": _LETTERS,
    "ideographic": NONE,
    "letter": _LETTERS,
    "lowercase": _LOWER,
    "uppercase": _UPPER,
    "titlecase": NONE,
    "punctuation": _PUNCTUATION,
    "control": NONE,
    "white_space": NONE,
    "whitespace": NONE,
    "digit": DIGITS,
    "hex_digit": frozenset(string.hexdigits),
    "hexdigit": frozenset(string.hexdigits),
    "join_control": NONE,
    "joincontrol": NONE,
    "noncharacter_code_point": NONE,
    "noncharactercodepoint": NONE,
    "assigned": ALPHABET,
    "alnum": _ALNUM,
    "word": WORD,
}
_SCRIPTS: Final = {"latin": _LETTERS, "latn": _LETTERS, "common": ALPHABET - _LETTERS}
_BLOCKS: Final = {"basiclatin", "basic latin", "basic_latin"}
_CATEGORIES: Final = re.compile(
    "C[cfosn]?|L[ulmto]?|LC|LD|M[nec]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|L1|all"
)
_CASED: Final = {
    "lower",
    "upper",
    "javalowercase",
    "javauppercase",
    "islowercase",
    "isuppercase",
    "lu",
    "ll",
    "lt",
}


def property_of(name: str, *, any_case: bool = False) -> frozenset[str]:
    """Return the characters with a property; ValueError if it is unknown, or not supported."""
    if any_case and name.lower().removeprefix("is") in {each.removeprefix("is") for each in _CASED}:
        return _LETTERS
    for prefix, find in (
        ("script=", _script),
        ("sc=", _script),
        ("block=", _block),
        ("blk=", _block),
        ("general_category=", _category),
        ("gc=", _category),
    ):
        if name.lower().startswith(prefix):
            return _found(find(name[len(prefix) :]), name)
    if name.startswith("In"):
        return _found(_block(name[2:]), name)
    if name.startswith("Is"):
        rest = name[2:]
        return _found(_first((_BINARY.get(rest.lower()), _category(rest), _script(rest))), name)
    return _found(_first((_POSIX.get(name), _OF_JAVA.get(name), _category(name))), name)


def _first(found: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    return next((each for each in found if each is not None), None)


def _found(characters: frozenset[str] | None, name: str) -> frozenset[str]:
    if characters is None:
        raise ValueError(
            f"the property {name!r} is unknown or not supported; a topic's name has only ASCII letters, "
            "digits, '.', '_' and '-'"
        )
    return characters


def _script(name: str) -> frozenset[str] | None:
    return _SCRIPTS.get(name.lower())


def _block(name: str) -> frozenset[str] | None:
    return ALPHABET if name.lower() in _BLOCKS else None


def _category(name: str) -> frozenset[str] | None:
    if not _CATEGORIES.fullmatch(name):
        return None
    if name in {"all", "L1"}:
        return ALPHABET
    if name == "LD":
        return _ALNUM
    if name == "LC":
        return _LETTERS
    return frozenset(each for each in ALPHABET if unicodedata.category(each).startswith(name))
