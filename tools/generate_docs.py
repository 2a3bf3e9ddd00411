"""Writes docs/config.md from the declarations of the settings, and docs/apis.md from the handlers.

make docs, or python tools/generate_docs.py [DIRECTORY] to write somewhere else.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from headrace.broker.broker_settings import BROKER_SETTINGS
from headrace.broker.dispatch import HANDLERS, Handler, load_handlers
from headrace.broker.settings import Scope, Setting, show
from headrace.broker.topic_settings import BROKER_SYNONYMS, TOPIC_SETTINGS

DOCS = Path(__file__).resolve().parent.parent / "docs"
GENERATED = "<!-- Written by `make docs`: change the declarations, not this page. -->"

_LABEL = re.compile(r"^(Behaviour|Versions|Not yet):\s+", re.MULTILINE)


def config_page() -> str:
    """Every setting of a broker and of a topic."""
    own = [each for each in BROKER_SETTINGS.by_name.values() if each.name not in BROKER_SYNONYMS.values()]
    return "\n".join(
        [
            "# Settings",
            "",
            GENERATED,
            "",
            "Kafka's names, and Kafka's defaults where the two have the same thing to say. A broker takes",
            "its settings from a file (`headrace broker --config server.properties`), from the environment",
            "(`HEADRACE_LOG_DIRS` is `log.dirs`) and from `--set name=value`; the later wins. An unknown",
            "name or a value that cannot be is refused at the start. What is *dynamic* can be changed while",
            "the broker runs: with `headrace config set`, with any admin client, or in the file, followed",
            "by a HUP.",
            "",
            "## Of a broker",
            "",
            *_settings_table(own),
            "",
            "## Of a topic",
            "",
            "`headrace topic create --config`, `headrace config set topic`. The broker's setting in the last",
            "column gives the default; all of these are dynamic.",
            "",
            *_topic_table(TOPIC_SETTINGS.by_name.values()),
            "",
        ]
    )


def _settings_table(settings: Iterable[Setting]) -> Iterator[str]:
    yield "| setting | type | default | dynamic | meaning |"
    yield "| --- | --- | --- | --- | --- |"
    for each in sorted(settings, key=lambda each: each.name):
        dynamic = "" if each.scope is Scope.READ_ONLY else "yes"
        yield f"| `{each.name}` | {_kind(each)} | {_default(each)} | {dynamic} | {_cell(each.doc)} |"


def _topic_table(settings: Iterable[Setting]) -> Iterator[str]:
    yield "| setting | type | default | meaning | of the broker |"
    yield "| --- | --- | --- | --- | --- |"
    for each in sorted(settings, key=lambda each: each.name):
        synonym = f"`{BROKER_SYNONYMS[each.name]}`" if each.name in BROKER_SYNONYMS else ""
        yield f"| `{each.name}` | {_kind(each)} | {_default(each)} | {_cell(each.doc)} | {synonym} |"


def _kind(setting: Setting) -> str:
    name = setting.kind.name.lower()
    if setting.choices:
        return f"{name}: {', '.join(setting.choices)}"
    if setting.low is not None and setting.high is not None:
        return f"{name}, {setting.low:g} to {setting.high:g}"
    return name if setting.low is None else f"{name}, ≥ {setting.low:g}"


def _default(setting: Setting) -> str:
    value = show(setting.default)
    return f"`{value}`" if value else ""


def apis_page() -> str:
    """Every API that is answered, with its versions and what its file says about it."""
    load_handlers()
    handlers = sorted(HANDLERS.values(), key=lambda handler: handler.key)
    return "\n".join(
        [
            "# APIs",
            "",
            GENERATED,
            "",
            "What a broker answers, as ApiVersions says it. Each is one file in",
            "`src/headrace/broker/handlers`, whose head is the text below.",
            "",
            "| key | API | versions |",
            "| --- | --- | --- |",
            *(
                f"| {each.key:d} | [{_name(each)}](#{_name(each).lower()}) | {_versions(each)} |"
                for each in handlers
            ),
            "",
            *(line for handler in handlers for line in _api(handler)),
        ]
    )


def _api(handler: Handler) -> Iterator[str]:
    yield f"## {_name(handler)}"
    yield ""
    yield f"Key {handler.key:d}, versions {_versions(handler)}."
    yield ""
    for label, text in _notes(handler):
        yield f"- **{label}:** {text}"
    yield ""


def _notes(handler: Handler) -> Iterator[tuple[str, str]]:
    documentation = sys.modules[handler.function.__module__].__doc__ or ""
    pieces = _LABEL.split(documentation)[1:]
    for label, text in zip(pieces[::2], pieces[1::2], strict=True):
        yield label, " ".join(text.split())


def _name(handler: Handler) -> str:
    head = (sys.modules[handler.function.__module__].__doc__ or "").partition(" (key ")[0]
    words = "".join(word.capitalize() for word in handler.key.name.split("_"))
    return head if head.isidentifier() else words


def _versions(handler: Handler) -> str:
    first, last = handler.versions[0], handler.versions[-1]
    return f"{first} to {last}" if last > first else str(first)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def main(directory: Path) -> None:
    (directory / "config.md").write_text(config_page(), "utf-8")
    (directory / "apis.md").write_text(apis_page(), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS)
