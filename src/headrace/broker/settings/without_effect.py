"""The broker settings of Kafka 4.3 that have no effect in Headrace: without_effect.json, grouped by reason.

Their names, types, defaults and bounds are declared, so that a broker accepts files and tools made for Kafka
and refuses invalid values. `tests/compat/test_settings_against_kafka.py` compares the list with Apache
Kafka's. A line of the file is the function of `setting.py`, the name, the default, and more arguments.
"""

import json
from pathlib import Path
from typing import Any, Final

from headrace.broker.settings import setting

_FILE: Final = Path(__file__).with_name("without_effect.json")


def settings_without_effect() -> list[setting.Setting]:
    """Read the file."""
    declared = []
    for reason, lines in json.loads(_FILE.read_text()).items():
        settings = [_setting(*line) for line in lines]
        declared += setting.without_effect(reason, *settings)
    return declared


def _setting(
    function: str, name: str, default: Any = None, more: dict[str, Any] | None = None
) -> setting.Setting:
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in (more or {}).items()}
    if "scope" in options:
        options["scope"] = setting.Scope(options["scope"])
    default = tuple(default) if isinstance(default, list) else default
    declared: setting.Setting = getattr(setting, function)(name, default, **options)
    return declared
