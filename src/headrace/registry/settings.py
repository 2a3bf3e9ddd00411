"""The configs and modes of subjects, contexts and the whole registry."""

from dataclasses import replace
from typing import Final

from headrace.registry import names
from headrace.registry.formats import Level
from headrace.registry.records import ConfigKey, ConfigValue, Mode, ModeKey, ModeValue, RecordKey, RecordValue
from headrace.registry.refusals import NotPermitted

DEFAULT_LEVEL: Final = Level.BACKWARD
GLOBAL: Final = f":{names.GLOBAL_CONTEXT}:"


class Settings:
    """Configs and modes by subject or context; None is the default context, which also applies to others."""

    def __init__(self) -> None:
        self._configs: dict[str | None, ConfigValue] = {}
        self._modes: dict[str | None, Mode] = {}

    def apply(self, key: ConfigKey | ModeKey, value: RecordValue | None) -> None:
        match key, value:
            case ConfigKey(subject), ConfigValue() as config:
                self._configs[subject] = config
            case ConfigKey(subject), _:
                self._configs.pop(subject, None)
            case ModeKey(subject), ModeValue(mode):
                self._modes[subject] = mode
            case ModeKey(subject), _:
                self._modes.pop(subject, None)

    def config(self, subject: str | None) -> ConfigValue | None:
        return self._configs.get(subject)

    def mode(self, subject: str | None) -> Mode | None:
        return self._modes.get(subject)

    def config_in_force(self, subject: str | None) -> ConfigValue:
        """Return the config that applies: the subject's, else its context's, else the global one."""
        configs = [self._configs[scope] for scope in _scopes(subject) if scope in self._configs]
        found = configs[0] if configs else ConfigValue()
        levels = (config.compatibility for config in configs if config.compatibility is not None)
        return replace(found, compatibility=next(levels, DEFAULT_LEVEL))

    def mode_in_force(self, subject: str | None) -> Mode:
        """Return the mode that applies. A global READONLY_OVERRIDE overrides the mode of a subject."""
        if Mode.READONLY_OVERRIDE in (self._modes.get(each) for each in (None, GLOBAL)):
            return Mode.READONLY_OVERRIDE
        return next(
            (self._modes[scope] for scope in _scopes(subject) if scope in self._modes), Mode.READWRITE
        )

    def check_writable(self, subject: str | None) -> None:
        """Raise NotPermitted if the subject, or the registry for None, is in a read-only mode."""
        if self.mode_in_force(subject) in {Mode.READONLY, Mode.READONLY_OVERRIDE}:
            which = "The registry" if subject is None else f"Subject {subject}"
            raise NotPermitted(f"{which} is in read-only mode")

    def resolve_alias(self, subject: str) -> str:
        """Return the subject that this name is an alias of, or the name itself."""
        config = self._configs.get(subject)
        return subject if config is None or not config.alias else names.qualified(subject, config.alias)

    def keys_of(self, subject: str) -> list[RecordKey]:
        """Return the keys of the settings that are deleted together with the subject."""
        found: list[RecordKey] = [ModeKey(subject)] if subject in self._modes else []
        return [*found, ConfigKey(subject)] if subject in self._configs else found


def _scopes(subject: str | None) -> list[str | None]:
    """Return the names under which a setting is looked for, the most specific first."""
    if subject is None:
        return [None, GLOBAL]
    return [subject, names.parse(subject).prefix or None, GLOBAL]
