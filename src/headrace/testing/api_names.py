"""APIs and errors by the names that people know them by; who mistypes one is told what it could have been."""

from collections.abc import Iterable
from difflib import get_close_matches

from headrace.broker.dispatch import HANDLERS, load_handlers
from headrace.protocol.api import api_schema
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.index import ApiKey


def api_key(name: str) -> ApiKey:
    """The API that is called so: "OffsetCommit", "offset_commit". ValueError if the broker has none."""
    load_handlers()
    known = {api_schema(key).name: ApiKey(key) for key in HANDLERS if key in set(ApiKey)}
    by_letters = {_letters(each): key for each, key in known.items()}
    found = by_letters.get(_letters(name))
    if found is None:
        raise ValueError(f"there is no API {name!r}: {_instead(name, known)}")
    return found


def api_name(key: int) -> str:
    return api_schema(key).name


def error_code(error: str | ErrorCode) -> ErrorCode:
    """The error of this name: "NOT_LEADER_OR_FOLLOWER". ValueError if Kafka has none."""
    if isinstance(error, ErrorCode):
        found: ErrorCode | None = error
    else:
        found = ErrorCode.__members__.get(error.upper())
    if found is None:
        raise ValueError(
            f"there is no error {error!r}: {_instead(str(error).upper(), ErrorCode.__members__)}"
        )
    if found is ErrorCode.NONE:
        raise ValueError("NONE is no error: name the one that clients shall get")
    return found


def _letters(name: str) -> str:
    return name.replace("_", "").lower()


def _instead(name: str, known: Iterable[str]) -> str:
    by_letters = {_letters(each): each for each in known}
    near = [by_letters[each] for each in get_close_matches(_letters(name), by_letters, n=4, cutoff=0.5)]
    return f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(known))}"
