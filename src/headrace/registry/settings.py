"""What is set for a subject, a context, or all: how schemas may change, and what may be done at all."""

from typing import Final

from headrace.registry import names
from headrace.registry.formats import Level
from headrace.registry.records import ConfigKey, ConfigValue, Key, Mode, ModeKey, ModeValue, Value

DEFAULT_LEVEL: Final = Level.BACKWARD
FOR_ALL: Final = f":{names.GLOBAL_CONTEXT}:"


class Settings:
    """Configs and modes by whom they are for; None is the default context, and so for most the world."""

    def __init__(self) -> None:
        self._configs: dict[str | None, ConfigValue] = {}
        self._modes: dict[str | None, Mode] = {}

    def apply(self, key: ConfigKey | ModeKey, value: Value | None) -> None:
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
        """What has been set for the very subject, or context."""
        return self._configs.get(subject)

    def mode(self, subject: str | None) -> Mode | None:
        """What has been set for the very subject, or context."""
        return self._modes.get(subject)

    def config_in_force(self, subject: str | None) -> ConfigValue:
        """What holds for a subject: its own, then its context's, then what is set for all."""
        found = next(
            (self._configs[each] for each in _scopes(subject) if each in self._configs), ConfigValue()
        )
        if found.compatibility is not None:
            return found
        levels = (each.compatibility for scope in _scopes(subject) if (each := self._configs.get(scope)))
        level = next((each for each in levels if each is not None), DEFAULT_LEVEL)
        return ConfigValue(level, found.normalize, found.alias, found.group, found.others)

    def mode_in_force(self, subject: str | None) -> Mode:
        """What may be done to a subject. READONLY_OVERRIDE for all is stronger than a subject's own."""
        everywhere = (self._modes.get(each) for each in (None, FOR_ALL))
        if Mode.READONLY_OVERRIDE in everywhere:
            return Mode.READONLY_OVERRIDE
        return next((self._modes[each] for each in _scopes(subject) if each in self._modes), Mode.READWRITE)

    def meant_by(self, subject: str) -> str:
        """The subject that this name stands for: another one if it is an alias."""
        config = self._configs.get(subject)
        return subject if config is None or not config.alias else names.beside(subject, config.alias)

    def keys_of(self, subject: str) -> list[Key]:
        """The keys of what is set for the very subject: it goes when the subject does."""
        found: list[Key] = [ModeKey(subject)] if subject in self._modes else []
        return [*found, ConfigKey(subject)] if subject in self._configs else found


def _scopes(subject: str | None) -> list[str | None]:
    """Where to look for a setting, the nearest first."""
    if subject is None:
        return [None, FOR_ALL]
    name = names.parse(subject)
    return [subject, name.prefix or None, FOR_ALL]
