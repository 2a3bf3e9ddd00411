"""References in settings, as `${file:/run/secrets/kafka.properties:password}`, and what they refer to.

The syntax is that of Kafka's ConfigProviders: `${provider:path:key}` or `${provider:key}`. The providers
`env`, `file` and `directory` need no configuration. Others are functions of Python:

    config.providers=vault
    config.providers.vault.class=company.secrets:read     read(path, key, **parameters) -> str
    config.providers.vault.param.address=https://...      a parameter

What a reference refers to is in no error message.
"""

import os
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

from headrace.client.errors import WrongSetting
from headrace.client.properties import InvalidProperties, parse_properties

PROVIDERS: Final = "config.providers"
MAX_BYTES: Final = 1024 * 1024  # of a file with a secret
_REFERENCE: Final = re.compile(r"\$\{(?P<provider>[^}:]*):(?:(?P<path>[^}]*):)?(?P<key>[^}:]*)\}")
_OF_KAFKA: Final = "org.apache.kafka.common.config.provider."

Provider: TypeAlias = Callable[..., str]


class UnresolvedReference(WrongSetting):
    """A reference cannot be resolved; the message has the reference and not a value."""


def has_reference(value: object) -> bool:
    """Whether a setting's value refers to something else."""
    return isinstance(value, str) and _REFERENCE.search(value) is not None


def without_references(text: str) -> str:
    """Return the text with nothing in place of references."""
    return _REFERENCE.sub("", text)


def resolve(settings: Mapping[str, Any], literal: Collection[str] = ()) -> dict[str, Any]:
    """Return the settings with references replaced, once, and without those of the providers themselves.

    Values of the settings in `literal` are used as they are: they were resolved before, or come from users
    who must not read files and variables of this process.
    """
    others = {name: value for name, value in settings.items() if not f"{name}.".startswith(f"{PROVIDERS}.")}
    referring = [name for name, value in others.items() if name not in literal and has_reference(value)]
    if not referring:
        return others
    providers = _providers(settings)
    return others | {name: _resolved(name, others[name], providers) for name in referring}


def _resolved(setting: str, value: str, providers: Mapping[str, Provider]) -> str:
    def replaced(found: re.Match[str]) -> str:
        reference, name = found[0], found["provider"]
        provider = providers.get(name)
        if provider is None:
            known = ", ".join(sorted(providers))
            why = (
                f"refers to {reference}: there is no provider {name!r}; expected {known}, or name its class "
            )
            raise UnresolvedReference(setting, f"{why}with {PROVIDERS} and {PROVIDERS}.{name}.class")
        try:
            resolved: object = provider(found["path"] or "", found["key"])
        except _NotFound as error:
            raise UnresolvedReference(setting, f"refers to {reference}, which {error}") from None
        except Exception as error:  # noqa: BLE001  of somebody else's function; its message may have a secret
            why = f"refers to {reference}, and the provider fails with {type(error).__name__}"
            raise UnresolvedReference(setting, why) from None
        if not isinstance(resolved, str):
            kind = type(resolved).__name__
            raise UnresolvedReference(setting, f"refers to {reference}, which is {kind}, expected a text")
        return resolved

    return _REFERENCE.sub(replaced, value)


class _NotFound(Exception):
    """What a reference names does not exist, or may not be read."""


def _of_environment(_path: str, key: str, *, allowlist_pattern: str = ".*") -> str:
    if not re.fullmatch(allowlist_pattern, key):
        raise _NotFound("is not matched by its allowlist.pattern")
    if key not in os.environ:
        raise _NotFound("is not set here: executors need the variable as well")
    return os.environ[key]


def _of_file(path: str, key: str, *, allowed_paths: str = "") -> str:
    if not path:
        raise _NotFound("names no key: expected ${file:PATH:KEY}, or ${directory:PATH:FILE} for a whole file")
    try:
        found = parse_properties(_read(Path(path), allowed_paths), path)
    except InvalidProperties as error:  # it has the number of a line, and not its text
        raise _NotFound(f"cannot be read: {error}") from None
    if key not in found:
        raise _NotFound("is not in that file")
    return found[key]


def _of_directory(path: str, key: str, *, allowed_paths: str = "") -> str:
    if not path or "/" in key or key in {"", ".", ".."}:
        raise _NotFound("does not name a file: expected ${directory:PATH:FILE}")
    return _read(Path(path) / key, allowed_paths).removesuffix("\n").removesuffix("\r")


def _read(path: Path, allowed_paths: str) -> str:
    allowed = [Path(each.strip()).resolve() for each in allowed_paths.split(",") if each.strip()]
    if allowed and not any(path.resolve().is_relative_to(each) for each in allowed):
        raise _NotFound("is not in its allowed.paths")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _NotFound(f"cannot be read: {(error.strerror or 'an error').lower()}") from None
    if len(data) > MAX_BYTES:
        raise _NotFound(f"has more than {MAX_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _NotFound("is not text in UTF-8") from None


_BUILT_IN: Final[dict[str, Provider]] = {"env": _of_environment, "file": _of_file, "directory": _of_directory}
_BY_CLASS: Final[dict[str, Provider]] = {
    f"{_OF_KAFKA}EnvVarConfigProvider": _of_environment,
    f"{_OF_KAFKA}FileConfigProvider": _of_file,
    f"{_OF_KAFKA}DirectoryConfigProvider": _of_directory,
}


def _providers(settings: Mapping[str, Any]) -> dict[str, Provider]:
    """Return the built-in providers, and those that the settings configure."""
    found = dict(_BUILT_IN)
    for name in filter(None, (each.strip() for each in str(settings.get(PROVIDERS, "")).split(","))):
        setting = f"{PROVIDERS}.{name}.class"
        prefix = f"{PROVIDERS}.{name}.param."
        parameters = {
            each.removeprefix(prefix).replace(".", "_"): str(value)
            for each, value in settings.items()
            if each.startswith(prefix)
        }
        found[name] = partial(_loaded(setting, str(settings.get(setting, "")).strip()), **parameters)
    return found


def _loaded(setting: str, named: str) -> Provider:
    if named in _BY_CLASS:
        return _BY_CLASS[named]
    module, _, function = named.partition(":")
    if not (module and function):
        said = f"is {named!r}" if named else "is missing"
        known = ", ".join(_BY_CLASS)
        raise WrongSetting(setting, f"{said}: expected module:function of Python, or one of {known}")
    try:
        loaded = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise WrongSetting(setting, f"is {named}, which cannot be imported: {error}") from error
    assert callable(loaded), named
    return loaded  # type: ignore[no-any-return]
