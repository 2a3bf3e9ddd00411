"""A context as a registry of its own: `/contexts/.billing` before a path is what clients have as their URL.

/contexts/.billing/subjects/orders/versions   is   /subjects/:.billing:orders/versions
/contexts/.billing/schemas/ids/1              is   /schemas/ids/1?subject=:.billing:
/contexts/.billing/config                     is   /config/:.billing:
"""

import re
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode

from headrace.registry import names

_WITHIN: Final = re.compile(r"/contexts/([^/]+)(/(?:subjects|schemas|config|mode|compatibility)(?:/.*)?)")
_SETTINGS: Final = {"/config", "/mode"}
_LISTS: Final = {"/subjects": "subjectPrefix", "/schemas": "subjectPrefix"}


class Asked(NamedTuple):
    """A path and a query, in the context that they are about."""

    path: str
    query: bytes
    context: str

    def qualified(self, subject: str) -> str:
        """A subject of this context, unless it names another."""
        return names.qualified(f":{self.context}:", subject)


def unfolded(path: str, query: bytes) -> Asked:
    """What is meant by a path, which is not decoded yet."""
    match = _WITHIN.fullmatch(path)
    if match is None:
        return Asked(path, query, names.DEFAULT_CONTEXT)
    context, rest = unquote(match[1]).strip(":"), match[2]
    if not context.startswith(".") or context == names.DEFAULT_CONTEXT:
        return Asked(rest, query, names.DEFAULT_CONTEXT)
    if rest in _SETTINGS:
        return Asked(f"{rest}/:{context}:", query, context)
    which = _LISTS.get(rest, "subject" if rest.startswith("/schemas/ids/") else None)
    asked = Asked(rest, query, context)
    return asked if which is None else asked._replace(query=_narrowed(asked, which))


def _narrowed(asked: Asked, which: str) -> bytes:
    """The query with a parameter that says which context is meant."""
    said = dict(parse_qsl(asked.query.decode("latin-1"), keep_blank_values=True))
    subject = said.get(which, "").removeprefix(names.EVERYWHERE)
    return urlencode({**said, which: asked.qualified(subject)}).encode()
