"""Writes docs/config.md from the settings, docs/apis.md from the handlers, docs/cli.md from the commands.

make docs, or python tools/generate_docs.py [DIRECTORY] to write somewhere else.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from inspect import cleandoc
from pathlib import Path

import click

from headrace.broker.requests.dispatch import HANDLERS, Handler, load_handlers
from headrace.broker.settings.broker import BROKER_SETTINGS
from headrace.broker.settings.group_configs import GROUP_CONFIGS, GROUP_SYNONYMS
from headrace.broker.settings.setting import Scope, Setting, show
from headrace.broker.settings.topic import BROKER_SYNONYMS, TOPIC_SETTINGS
from headrace.cli.main import commands

DOCS = Path(__file__).resolve().parent.parent / "docs"
GENERATED = "<!-- Written by `make docs`: change the declarations, not this page. -->"

_AS_IT_IS = "\b\n"  # how click is told not to wrap a paragraph
_LABEL = re.compile(r"^(Behaviour|Versions|Not yet):\s+", re.MULTILINE)


def config_page() -> str:
    """Every setting of a broker, a topic and a group, and those that have no effect by the reason."""
    broker = BROKER_SETTINGS.by_name.values()
    own = [each for each in broker if each.name not in BROKER_SYNONYMS.values() and each.has_effect]
    topic = [each for each in TOPIC_SETTINGS.by_name.values() if each.has_effect]
    group = [each for each in GROUP_CONFIGS.by_name.values() if each.has_effect]
    return "\n".join(
        [
            "# Settings",
            "",
            GENERATED,
            "",
            "Kafka's names, and Kafka's defaults where the two have the same thing to say. A broker takes",
            "its settings from a file (`headrace broker --config server.properties`), from the environment",
            "(`HEADRACE_LOG_DIRS` is `log.dirs`) and from `--set name=value`; the later wins. An unknown",
            "name or a value that cannot be is refused at the start. Every setting of Kafka 4.3 is known by",
            "name; [some have no effect](#without-effect), and a broker that is started with one of those",
            "logs a warning. What is *dynamic* can be changed while the broker runs: with `headrace config",
            "set`, with any admin client, or in the file, followed by a HUP.",
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
            *_topic_table(topic, BROKER_SYNONYMS),
            "",
            "## Of a group",
            "",
            "`kafka-configs --group NAME --alter --add-config …`, or any admin client. Members' next",
            "heartbeats go by them. The broker's setting in the last column gives the default.",
            "",
            *_topic_table(group, GROUP_SYNONYMS),
            "",
            "## Without effect",
            "",
            "Settings of Kafka 4.3 that are accepted with the values that Kafka accepts, and do nothing.",
            "What Kafka changes at run time can be changed here at run time, too.",
            "",
            *_without_effect("broker", broker),
            *_without_effect("topic", TOPIC_SETTINGS.by_name.values()),
            *_without_effect("group", GROUP_CONFIGS.by_name.values()),
        ]
    )


def _without_effect(of: str, settings: Iterable[Setting]) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for each in settings:
        if not each.has_effect:
            reason = each.doc.rpartition("No effect: ")[2].removesuffix(".")
            by_reason.setdefault(reason, []).append(f"`{each.name}`")
    yield f"| of a {of} | because |"
    yield "| --- | --- |"
    for reason, names in by_reason.items():
        yield f"| {', '.join(sorted(names))} | {_cell(reason)} |"
    yield ""


def _settings_table(settings: Iterable[Setting]) -> Iterator[str]:
    yield "| setting | type | default | dynamic | meaning |"
    yield "| --- | --- | --- | --- | --- |"
    for each in sorted(settings, key=lambda each: each.name):
        dynamic = "" if each.scope is Scope.READ_ONLY else "yes"
        yield f"| `{each.name}` | {_kind(each)} | {_default(each)} | {dynamic} | {_cell(each.doc)} |"


def _topic_table(settings: Iterable[Setting], synonyms: Mapping[str, str]) -> Iterator[str]:
    yield "| setting | type | default | meaning | of the broker |"
    yield "| --- | --- | --- | --- | --- |"
    for each in sorted(settings, key=lambda each: each.name):
        synonym = f"`{synonyms[each.name]}`" if each.name in synonyms else ""
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
            "| key | API | versions | requires |",
            "| --- | --- | --- | --- |",
            *(
                f"| {each.key:d} | [{_name(each)}](#{_name(each).lower()}) | {_versions(each)} "
                f"| {_requires(each)} |"
                for each in handlers
            ),
            "",
            *(line for handler in handlers for line in _api(handler)),
        ]
    )


def _requires(handler: Handler) -> str:
    """What the principal of a request must be allowed to do, and where brokers accept it."""
    required = ", ".join(dict.fromkeys(map(str, handler.requires))) or "nothing"
    return f"{required}; inter-broker listener" if handler.inter_broker else required


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


def cli_page() -> str:
    """Every command with its options, as `--help` has them."""
    found = list(
        _commands(commands, click.Context(commands, info_name="headrace", **commands.context_settings))
    )
    return "\n".join(
        [
            "# Commands",
            "",
            GENERATED,
            "",
            "`headrace COMMAND --help` says the same. `--bootstrap` and `--json` may also stand before the",
            "command. With `--json` the result is one JSON document, or one a line where records or progress",
            'keep coming, and an error is `{"error": "…"}` on stderr. The exit status is 0 if all went well,',
            "1 if it did not, 2 if the command was not understood, and 130 after Ctrl-C.",
            "",
            "| command | what it does |",
            "| --- | --- |",
            *(
                f"| [`{context.command_path}`](#{_anchor(context)}) | {_cell(_summary(context.command))} |"
                for context in found
            ),
            "",
            *(line for context in found for line in _command(context)),
        ]
    )


def _commands(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    """The context of each command that does something, in the order of their names."""
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None, name
            yield from _commands(child, click.Context(child, parent=context, info_name=name))


def _command(context: click.Context) -> Iterator[str]:
    yield f"## {context.command_path}"
    yield ""
    for paragraph in cleandoc(context.command.help or "").split("\n\n"):
        yield from _paragraph(paragraph)
    arguments = " ".join(context.command.collect_usage_pieces(context))
    yield from ("```", f"{context.command_path} {arguments}", "```", "")
    yield "| option | meaning |"
    yield "| --- | --- |"
    for each in context.command.params:
        record = each.get_help_record(context) if isinstance(each, click.Option) else None
        if record is not None:
            name = re.sub(r"(INTEGER|FLOAT)( RANGE)?", "N", record[0])
            yield f"| `{_cell(name)}` | {_cell(_markdown(record[1]))} |"
    yield ""


def _paragraph(text: str) -> Iterator[str]:
    """Its lines; what click leaves as it is, and an example behind two spaces, is code."""
    if text.startswith(_AS_IT_IS):
        lines = text.removeprefix(_AS_IT_IS).strip("\n").splitlines()
        yield from ("```sh", *(line.strip() for line in lines), "```", "")
        return
    example = re.fullmatch(r"(.*):\s{2,}(headrace .*)|\s*(headrace .*)", text, re.DOTALL)
    if example is None:
        yield from (_markdown(" ".join(text.split())), "")
        return
    if example[1] is not None:
        yield from (f"{_markdown(' '.join(example[1].split()))}:", "")
    yield from ("```sh", " ".join((example[2] or example[3]).split()), "```", "")


def _summary(command: click.Command) -> str:
    first = (command.help or "").partition("\n\n")[0]
    return _markdown(" ".join(first.partition(":  ")[0].split()))


def _markdown(text: str) -> str:
    """What Markdown would take for its own is left as people see it."""
    pieces = text.split("`")
    pieces[::2] = [re.sub(r"([*_<>\[\]])", r"\\\1", piece) for piece in pieces[::2]]
    return "`".join(pieces)


def _anchor(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def main(directory: Path) -> None:
    (directory / "config.md").write_text(config_page(), "utf-8")
    (directory / "apis.md").write_text(apis_page(), "utf-8")
    (directory / "cli.md").write_text(cli_page(), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS)
