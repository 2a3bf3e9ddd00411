"""Writes the tables beside the messages: which APIs there are, and what error codes mean."""

import re
from collections.abc import Iterable

from .emit import NOTICE, version_range
from .model import Schema


def index_source(schemas: Iterable[Schema], kafka_version: str) -> str:
    """schema/index.py: where the classes of an API key are, without importing any of them."""
    apis = [schema for schema in schemas if schema.messages[0].key is not None]
    members = "\n".join(f"    {_constant(api)} = {api.messages[0].key}" for api in apis)
    entries = "\n".join(f"    ApiKey.{_constant(api)}: {_entry(api)}," for api in apis)
    unstable = [f"ApiKey.{_constant(api)}" for api in apis if api.messages[0].latest_version_unstable]
    return f'''"""Every API, its versions and where its classes are. {NOTICE}"""

from enum import IntEnum
from typing import Final, NamedTuple

KAFKA_VERSION: Final = "{kafka_version}"
"""The Kafka whose message definitions these are."""


class ApiKey(IntEnum):
    """The number that opens a request and says what it asks for."""

{members}


class ApiSchema(NamedTuple):
    """Where to find an API: `module` in this package holds `name`Request and `name`Response."""

    name: str
    module: str
    versions: range
    flexible: range


APIS: Final[dict[int, ApiSchema]] = {{
{entries}
}}

LATEST_VERSION_UNSTABLE: Final = frozenset({{{", ".join(unstable)}}})
"""APIs whose newest version Kafka may still change: its brokers refuse it by default."""
'''


def _constant(api: Schema) -> str:
    return api.module.upper()


def _entry(api: Schema) -> str:
    request, response = api.messages
    assert (request.versions, request.flexible) == (response.versions, response.flexible), api.module
    version_range(request.versions)  # refuses holes
    versions, flexible = _range(request.versions), _range(request.flexible)
    return f'ApiSchema("{api.title}", "{api.module}", {versions}, {flexible})'


def _range(versions: tuple[int, ...]) -> str:
    if not versions:
        return "range(0)"
    first, end = versions[0], versions[-1] + 1
    return f"range({first}, {end})" if first else f"range({end})"


def error_codes_source(table: str) -> str:
    """schema/error_codes.py: names and numbers, and which of them are worth another try.

    `table` is what Kafka's class Errors prints for its documentation: names, numbers, and whether retriable.
    """
    codes = re.findall("<tr><td>([A-Z_]+)</td><td>(-?[0-9]+)</td><td>(True|False)</td>", table)
    members = "\n".join(f"    {name} = {number}" for name, number, _ in codes)
    retriable = "\n".join(
        f"        ErrorCode.{name}," for name, _, is_retriable in codes if is_retriable == "True"
    )
    return f'''"""Every error code of the protocol. {NOTICE}"""

from enum import IntEnum


class ErrorCode(IntEnum):
    """A number in a response; `retriable` says whether the same request may succeed later."""

{members}

    @property
    def retriable(self) -> bool:
        return self in _RETRIABLE


_RETRIABLE = frozenset(
    {{
{retriable}
    }}
)
'''
